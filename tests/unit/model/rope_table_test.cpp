#include "model/rope_table.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numbers>
#include <vector>

namespace kernelpath::model {
namespace {

TEST(RopeTable, Default_IsPowersOfTheta) {
  const RopeTable table({.dims = 4, .theta = 100.0});
  const std::vector<float> f = table.frequencies(0);
  EXPECT_FLOAT_EQ(f[0], 1.0F);
  EXPECT_FLOAT_EQ(f[1], 0.1F);
  EXPECT_FALSE(table.depends_on_length());
}

TEST(RopeTable, Llama3_KeepsShortWavesAndStretchesLongOnes) {
  const RopeSpec spec{.kind = RopeKind::kLlama3,
                      .dims = 64,
                      .theta = 500'000.0,
                      .factor = 8.0,
                      .original_max_position_embeddings = 64.0};
  const std::vector<float> plain = RopeTable({.dims = 64, .theta = 500'000.0}).frequencies(0);
  const std::vector<float> f = RopeTable(spec).frequencies(0);
  for (std::size_t i = 0; i < f.size(); ++i) {
    const double wave = 2.0 * std::numbers::pi / plain[i];
    if (wave > 64.0) {
      EXPECT_FLOAT_EQ(f[i], plain[i] / 8.0F);
    } else if (wave < 16.0) {
      EXPECT_FLOAT_EQ(f[i], plain[i]);
    }
    EXPECT_LE(f[i], plain[i]);
  }
}

TEST(RopeTable, Dynamic_GrowsOnlyBehindTheLimit) {
  const RopeTable table({.kind = RopeKind::kDynamic,
                         .dims = 8,
                         .theta = 10'000.0,
                         .factor = 2.0,
                         .max_position_embeddings = 128.0});
  EXPECT_TRUE(table.depends_on_length());
  EXPECT_EQ(table.frequencies(1), table.frequencies(128));
  const double theta = 10'000.0 * std::pow(2.0 * 256.0 / 128.0 - 1.0, 8.0 / 6.0);
  EXPECT_NEAR(table.frequencies(256)[1], std::pow(theta, -0.25), 1e-7);
}

TEST(RopeTable, Longrope_ChangesListsBehindTheOriginalLength) {
  const RopeTable table({.kind = RopeKind::kLongrope,
                         .dims = 2,
                         .factor = 4.0,
                         .original_max_position_embeddings = 16.0,
                         .short_factor = {1.0},
                         .long_factor = {2.0}});
  EXPECT_FLOAT_EQ(table.frequencies(16)[0], 1.0F);
  EXPECT_FLOAT_EQ(table.frequencies(17)[0], 0.5F);
  EXPECT_FLOAT_EQ(table.attention_factor(), std::sqrt(1.5F));
}

TEST(RopeTable, YarnAttentionFactor_IsTheQuotientOfBothScales) {
  RopeSpec spec{.kind = RopeKind::kYarn,
                .dims = 16,
                .factor = 10.0,
                .original_max_position_embeddings = 64.0};
  EXPECT_FLOAT_EQ(RopeTable(spec).attention_factor(), 0.1F * std::log(10.0F) + 1.0F);
  spec.mscale = 1.0;
  spec.mscale_all_dim = 1.0;
  EXPECT_FLOAT_EQ(RopeTable(spec).attention_factor(), 1.0F);
  spec.attention_factor = 0.5;
  EXPECT_FLOAT_EQ(RopeTable(spec).attention_factor(), 0.5F);
}

TEST(RopeTable, Yarn_FastDimensionsKeepTheirFrequency) {
  const RopeTable table({.kind = RopeKind::kYarn,
                         .dims = 64,
                         .factor = 10.0,
                         .original_max_position_embeddings = 4096.0});
  const std::vector<float> plain = RopeTable({.dims = 64}).frequencies(0);
  const std::vector<float> f = table.frequencies(0);
  EXPECT_FLOAT_EQ(f.front(), plain.front());
  EXPECT_NEAR(f.back(), plain.back() / 10.0F, 1e-9F);
}

TEST(RopeTable, Proportional_LeavesTheLastPairsUnrotated) {
  const RopeTable table({.kind = RopeKind::kProportional,
                         .dims = 8,
                         .theta = 100.0,
                         .factor = 2.0,
                         .partial_rotary_factor = 0.5});
  const std::vector<float> f = table.frequencies(0);
  EXPECT_FLOAT_EQ(f[0], 0.5F);
  EXPECT_GT(f[1], 0.0F);
  EXPECT_EQ(f[2], 0.0F);
}

TEST(RopeTable, Fill_UsesEachTokensOwnLength) {
  const RopeTable table({.kind = RopeKind::kLongrope,
                         .dims = 2,
                         .original_max_position_embeddings = 4.0,
                         .short_factor = {1.0},
                         .long_factor = {2.0}});
  const std::array<std::int64_t, 2> positions = {3, 3};
  const std::array<std::int64_t, 2> lengths = {4, 5};
  std::array<float, 2> cos{};
  std::array<float, 2> sin{};
  table.fill(positions, lengths, cos.data(), sin.data());
  EXPECT_FLOAT_EQ(sin[0], std::sin(3.0F));
  EXPECT_FLOAT_EQ(sin[1], std::sin(1.5F));
}

}  // namespace
}  // namespace kernelpath::model
