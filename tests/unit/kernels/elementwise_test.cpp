// Norms, rotary embedding and gates in vectors against the plain loops, over sizes with tails.
#include "kernels/cpu/elementwise.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace kernelpath::kernels::cpu {
namespace {

constexpr std::array kSizes{1, 2, 6, 16, 30, 64, 100};

std::vector<float> random_floats(std::size_t count, unsigned seed, float width = 2.0F) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> values(-width, width);
  std::vector<float> out(count);
  for (float& value : out) value = values(random);
  return out;
}

void expect_near(const std::vector<float>& got, const std::vector<float>& wanted,
                 float absolute = 1e-6F) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], wanted[i], absolute + 2e-6F * std::abs(wanted[i])) << "element " << i;
  }
}

class Elementwise : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!has_isa(GetParam())) GTEST_SKIP() << "this processor has no " << isa_name(GetParam());
  }
  [[nodiscard]] static const ElementwiseUnit& unit() { return elementwise_unit(GetParam()); }
};

TEST_P(Elementwise, NormOfEveryKind_IsThatOfPlainLoops) {
  for (const int size : kSizes) {
    const auto count = static_cast<std::size_t>(6 * size);
    const std::vector<float> x = random_floats(count, 1);
    const std::vector<float> weight = random_floats(static_cast<std::size_t>(size), 2);
    const std::vector<float> bias = random_floats(static_cast<std::size_t>(size), 3);
    for (const NormKind kind : {NormKind::kRms, NormKind::kLayer, NormKind::kL2}) {
      for (const int parts : {0, 1, 3}) {
        NormParams p{.kind = kind,
                     .n = 2,
                     .groups = 3,
                     .dim = size,
                     .x = x.data(),
                     .x_stride = 3 * size,
                     .y_stride = 3 * size,
                     .weight = (parts & 1) != 0 ? weight.data() : nullptr,
                     .bias = (parts & 2) != 0 ? bias.data() : nullptr,
                     .weight_offset = (parts & 1) != 0 ? 1.0F : 0.0F,
                     .eps = 1e-5F,
                     .scale = 0.5F};
        std::vector<float> wanted(count);
        p.y = wanted.data();
        norm_rows(p, 0, 6);
        std::vector<float> apart(count);
        p.y = apart.data();
        unit().norm(p, 0, 4);
        unit().norm(p, 4, 6);
        expect_near(apart, wanted);
        std::vector<float> in_place = x;
        p.x = p.y = in_place.data();
        unit().norm(p, 0, 6);
        EXPECT_EQ(in_place, apart);
      }
    }
  }
}

TEST_P(Elementwise, RopeInPlaceOrNot_IsThatOfPlainLoops) {
  for (const int half : {1, 3, 8, 16, 33}) {
    for (const bool interleaved : {false, true}) {
      const int width = 2 * half + 5;
      const std::vector<float> src = random_floats(static_cast<std::size_t>(4 * width), 4);
      const std::vector<float> cos = random_floats(static_cast<std::size_t>(2 * half), 5);
      const std::vector<float> sin = random_floats(static_cast<std::size_t>(2 * half), 6);
      RopeParams p{.n = 2,
                   .heads = 2,
                   .width = width,
                   .rotary = 2 * half,
                   .interleaved = interleaved,
                   .src = src.data(),
                   .src_stride = 2 * width,
                   .src_head_stride = width,
                   .dst_stride = 2 * width,
                   .dst_head_stride = width,
                   .cos = cos.data(),
                   .sin = sin.data()};
      std::vector<float> wanted(src.size());
      p.dst = wanted.data();
      rope_rows(p, 0, 4);
      std::vector<float> apart(src.size());
      p.dst = apart.data();
      unit().rope(p, 0, 4);
      expect_near(apart, wanted);
      std::vector<float> in_place = src;
      p.src = p.dst = in_place.data();
      p.width = p.rotary;
      unit().rope(p, 0, 4);
      EXPECT_EQ(in_place, apart);
    }
  }
}

TEST_P(Elementwise, EveryActivationAndLayout_IsThatOfPlainLoops) {
  for (int activation = 0; activation <= static_cast<int>(Activation::kClamped); ++activation) {
    for (const int size : kSizes) {
      for (const int element : {1, 2}) {
        const std::vector<float> values = random_floats(static_cast<std::size_t>(6 * size), 7, 20);
        GateParams p{.activation = static_cast<Activation>(activation),
                     .n = 3,
                     .dim = size,
                     .gate = values.data(),
                     .up = values.data() + (element == 2 ? 1 : size),
                     .stride = 2 * size,
                     .element = element,
                     .y_stride = size,
                     .limit = 7.0F,
                     .alpha = 1.702F};
        std::vector<float> wanted(static_cast<std::size_t>(3 * size));
        p.y = wanted.data();
        gate_elements(p, 0, 3 * size);
        std::vector<float> got(wanted.size());
        p.y = got.data();
        const std::int64_t cut = size + size / 2;
        unit().gate(p, 0, cut);
        unit().gate(p, cut, 3 * size);
        SCOPED_TRACE("activation " + std::to_string(activation));
        // The plain loop takes the tanh of large negative numbers from 1, and loses their digits.
        const bool loses = p.activation == Activation::kGeluTanh;
        expect_near(got, wanted, loses ? 4e-5F : 1e-6F);
      }
    }
  }
}

TEST_P(Elementwise, SiluOfExtremes_HasItsLimits) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> gate = {-1000.0F, -87.0F, 0.0F, 88.0F, 1000.0F, kInfinity, NAN};
  const std::vector<float> up(gate.size(), 1.0F);
  std::vector<float> y(gate.size());
  const auto count = static_cast<std::int64_t>(gate.size());
  unit().gate({.n = 1,
               .dim = count,
               .gate = gate.data(),
               .up = up.data(),
               .stride = count,
               .y = y.data(),
               .y_stride = count},
              0, count);
  EXPECT_NEAR(y[0], 0.0F, 1e-30F);
  EXPECT_NEAR(y[1], 0.0F, 1e-30F);
  EXPECT_EQ(y[2], 0.0F);
  EXPECT_EQ(y[3], 88.0F);
  EXPECT_EQ(y[4], 1000.0F);
  EXPECT_EQ(y[5], kInfinity);
  EXPECT_TRUE(std::isnan(y[6]));
}

INSTANTIATE_TEST_SUITE_P(Isas, Elementwise, testing::ValuesIn(kIsas),
                         [](const auto& tested) { return std::string(isa_name(tested.param)); });

}  // namespace
}  // namespace kernelpath::kernels::cpu
