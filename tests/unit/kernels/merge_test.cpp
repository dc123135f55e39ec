#include "kernels/cpu/merge.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace kernelpath::testing {
namespace {

namespace cpu = kernels::cpu;
using attention::ConstLse;
using attention::LogBase;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Merged {
  std::vector<float> o;
  std::vector<float> lse;
};

struct Part {
  std::vector<float> o;
  std::vector<float> lse;
};

// One row of two values.
Merged merge(const std::vector<Part>& parts, const float* sinks = nullptr) {
  std::vector<cpu::AttentionPart<LogBase::kE>> views;
  for (const Part& part : parts) {
    views.push_back({.o = part.o.data(), .lse = ConstLse<LogBase::kE>(part.lse.data())});
  }
  Merged out{.o = {kNan, kNan}, .lse = {kNan}};
  cpu::merge_attention<LogBase::kE>(views, {.rows = 1, .dim = 2}, sinks,
                                    {.o = out.o.data(), .lse = {out.lse.data()}});
  return out;
}

TEST(MergeAttention, EqualParts_AreAveraged) {
  const Merged got = merge({{{1.0F, 2.0F}, {0.5F}}, {{3.0F, 6.0F}, {0.5F}}});
  EXPECT_FLOAT_EQ(got.o[0], 2.0F);
  EXPECT_FLOAT_EQ(got.o[1], 4.0F);
  EXPECT_FLOAT_EQ(got.lse[0], 0.5F + std::log(2.0F));
}

TEST(MergeAttention, OnlyEmptyParts_GiveZeroAndMinusInfinity) {
  const Merged got = merge({{{0.0F, 0.0F}, {-kInfinity}}, {{kNan, 1.0F}, {-kInfinity}}});
  EXPECT_EQ(got.o, (std::vector<float>{0.0F, 0.0F}));
  EXPECT_EQ(got.lse[0], -kInfinity);
  const Merged none = merge({});
  EXPECT_EQ(none.o, (std::vector<float>{0.0F, 0.0F}));
  EXPECT_EQ(none.lse[0], -kInfinity);
}

TEST(MergeAttention, EmptyPart_DoesNotCountWhateverItHolds) {
  const Merged got = merge({{{kNan, kNan}, {-kInfinity}}, {{3.0F, 6.0F}, {1.0F}}});
  EXPECT_EQ(got.o, (std::vector<float>{3.0F, 6.0F}));
  EXPECT_FLOAT_EQ(got.lse[0], 1.0F);
}

TEST(MergeAttention, Sink_JoinsOnce) {
  const float sink = 0.5F;
  const Merged got = merge({{{1.0F, 2.0F}, {0.5F}}, {{1.0F, 2.0F}, {0.5F}}}, &sink);
  EXPECT_FLOAT_EQ(got.o[0], 2.0F / 3.0F);
  EXPECT_FLOAT_EQ(got.lse[0], 0.5F + std::log(3.0F));
  const Merged alone = merge({{{kNan, kNan}, {-kInfinity}}}, &sink);
  EXPECT_EQ(alone.o, (std::vector<float>{0.0F, 0.0F}));
  EXPECT_FLOAT_EQ(alone.lse[0], 0.5F);
}

TEST(MergeAttention, LargeLogits_DoNotOverflow) {
  const Merged got = merge({{{1.0F, 2.0F}, {1000.0F}}, {{3.0F, 6.0F}, {-1000.0F}}});
  EXPECT_EQ(got.o, (std::vector<float>{1.0F, 2.0F}));
  EXPECT_FLOAT_EQ(got.lse[0], 1000.0F);
}

}  // namespace
}  // namespace kernelpath::testing
