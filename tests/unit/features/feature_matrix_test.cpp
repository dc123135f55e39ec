#include "features/feature_matrix.h"

#include <gmock/gmock.h>

namespace kernelpath::features {
namespace {

const FeatureMatrix& trtllm() { return *find_feature_matrix("trtllm"); }

TEST(FeatureMatrix, Embedded_HasNineteenFeaturesAndAllPairs) {
  EXPECT_EQ(trtllm().features.size(), 19U);
  std::size_t pairs = 0;
  for (const auto& row : trtllm().cells) pairs += row.size();
  EXPECT_EQ(pairs, 171U);
}

TEST(FeatureMatrix, OrderOfAPair_DoesNotMatter) {
  const auto pp = *trtllm().find_feature("pipeline parallelism");
  const auto spec = *trtllm().find_feature("Speculative Decoding (linear)");
  EXPECT_EQ(trtllm().cell(pp, spec), trtllm().cell(spec, pp));
  EXPECT_EQ(trtllm().cell(pp, spec)->status, PairStatus::kNo);
  EXPECT_EQ(FeatureMatrix::pair_id(pp, spec), "FM-09-03");
  EXPECT_EQ(trtllm().cell(pp, pp), nullptr);
}

TEST(FeatureMatrix, Reasons_AreMarkedAsOurs) {
  std::size_t reasons = 0;
  for (const auto& row : trtllm().cells) {
    for (const PairCell& cell : row) {
      EXPECT_EQ(cell.reason_is_ours, !cell.reason.empty());
      reasons += cell.reason.empty() ? 0 : 1;
    }
  }
  EXPECT_GT(reasons, 0U);
}

TEST(FeatureMatrix, PairThatIsNotYesAndCanBeStated_HasItsRule) {
  const RuleTable& table = *find_rule_table("trtllm");
  EXPECT_NE(table.find("FM-09-03"), nullptr);
  EXPECT_EQ(table.find("FM-09-03")->level, Level::kError);
  EXPECT_EQ(table.find("FM-18-06")->level, Level::kNote);
  EXPECT_EQ(table.find("FM-11-10"), nullptr);
}

TEST(FeatureMatrix, BrokenFile_IsRefused) {
  const auto document = json::parse_object(
      R"({"features": ["a", "b"], "cells": [{"row": 0, "column": 1, "status": "yes"}]})", "m.json");
  EXPECT_FALSE(read_feature_matrix(*document).has_value());
}

}  // namespace
}  // namespace kernelpath::features
