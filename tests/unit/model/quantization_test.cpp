#include "model/quantization.h"

#include <gtest/gtest.h>

namespace kernelpath::model {
namespace {

config::Quantization quantization(std::string method, std::string algorithm) {
  config::Quantization out;
  out.method.value = std::move(method);
  out.algo.value = std::move(algorithm);
  return out;
}

TEST(ModuleMatches, EachWayOfWritingModules_HitsAndNearMisses) {
  EXPECT_TRUE(module_matches("lm_head", "lm_head"));
  EXPECT_TRUE(module_matches("model.layers.1.mlp", "model.layers.1.mlp.down_proj"));
  EXPECT_FALSE(module_matches("model.layers.1", "model.layers.11.mlp.down_proj"));
  EXPECT_TRUE(module_matches("model.layers.*.self_attn", "model.layers.3.self_attn.q_proj"));
  EXPECT_FALSE(module_matches("model.layers.*.self_attn", "model.layers.3.mlp.up_proj"));
  EXPECT_TRUE(module_matches("re:.*self_attn\\.[qk]_proj$", "model.layers.0.self_attn.k_proj"));
  EXPECT_FALSE(module_matches("re:self_attn", "model.layers.0.self_attn.k_proj"));
  EXPECT_FALSE(module_matches("re:(", "x")) << "not a regular expression";
  // More steps than there is time for, were they not counted.
  EXPECT_FALSE(module_matches("re:(.*)*(.*)*(.*)*x$", "model.layers.0.self_attn.k_proj.weight.y"));
}

TEST(QuantizationPlan, BlocksOfFp8_HaveTheStatedSize) {
  config::Quantization q = quantization("fp8", "FP8_BLOCK_SCALES");
  q.weight_block_size = {64, 32};
  const auto plan = QuantizationPlan::make(q);
  ASSERT_TRUE(plan);
  const Scheme scheme = plan->scheme_of("model.layers.0.mlp.up_proj");
  EXPECT_EQ(scheme.kind, SchemeKind::kFp8Block);
  EXPECT_EQ(scheme.block_rows, 64);
  EXPECT_EQ(scheme.block_cols, 32);
}

TEST(QuantizationPlan, ExcludedModules_StayAsTheyAre) {
  config::Quantization q = quantization("compressed-tensors", "NVFP4");
  q.exclude_modules = {"lm_head"};
  const auto plan = QuantizationPlan::make(q);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->scheme_of("lm_head").kind, SchemeKind::kPlain);
  EXPECT_EQ(plan->scheme_of("model.layers.0.mlp.up_proj").kind, SchemeKind::kNvfp4);
}

TEST(QuantizationPlan, MixedPrecision_GivesEachModuleItsOwn) {
  config::Quantization q = quantization("modelopt", "MIXED_PRECISION");
  q.layer_algos = {{"model.layers.0.mlp.up_proj", "NVFP4"},
                   {"model.layers.0.self_attn.q_proj", "FP8"}};
  const auto plan = QuantizationPlan::make(q);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->scheme_of("model.layers.0.mlp.up_proj").kind, SchemeKind::kNvfp4Scale2);
  EXPECT_EQ(plan->scheme_of("model.layers.0.self_attn.q_proj").kind, SchemeKind::kFp8Tensor);
  EXPECT_EQ(plan->scheme_of("model.layers.1.mlp.up_proj").kind, SchemeKind::kPlain);
}

TEST(QuantizationPlan, TargetsOfGroups_ArePatternsAndTheRest) {
  config::Quantization q = quantization("compressed-tensors", "MIXED_PRECISION");
  q.layer_algos = {{"re:.*self_attn\\.[qkv]_proj$", "FP8_PER_CHANNEL_PER_TOKEN"},
                   {"Linear", "NVFP4"}};
  q.exclude_modules = {"lm_head"};
  const auto plan = QuantizationPlan::make(q);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->scheme_of("model.layers.0.self_attn.q_proj").kind, SchemeKind::kFp8Channel);
  EXPECT_EQ(plan->scheme_of("model.layers.0.self_attn.o_proj").kind, SchemeKind::kNvfp4);
  EXPECT_EQ(plan->scheme_of("lm_head").kind, SchemeKind::kPlain);
}

TEST(QuantizationPlan, Mxfp4_IsForStackedExpertsAlone) {
  const auto plan = QuantizationPlan::make(quantization("mxfp4", "W4A16_MXFP4"));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->stacked_scheme_of("model.layers.0.mlp.experts.down_proj").kind,
            SchemeKind::kMxfp4);
  EXPECT_EQ(plan->scheme_of("model.layers.0.self_attn.q_proj").kind, SchemeKind::kPlain);
}

TEST(QuantizationPlan, UnknownAlgorithm_IsRefusedByName) {
  const auto plan = QuantizationPlan::make(quantization("awq", "W4A16_AWQ"));
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(plan.error().value, "W4A16_AWQ");
}

}  // namespace
}  // namespace kernelpath::model
