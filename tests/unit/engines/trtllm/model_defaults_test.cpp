#include "engines/trtllm/model_defaults.h"

#include "json/document.h"

#include <gtest/gtest.h>

namespace kernelpath::engines::trtllm {
namespace {

using UserFields = std::vector<std::pair<std::string, std::string>>;

json::Value parsed(const std::string& text) { return json::parse(text, "test").value().root; }

TEST(MergeModelDefaults, UserValue_Wins) {
  const UserFields user = {{"kv_cache_config.tokens_per_block", "32"}};
  const auto merged = merge_model_defaults("KimiLinearForCausalLM", user);
  ASSERT_EQ(merged.size(), 2u);
  EXPECT_EQ(merged[0].path, "kv_cache_config.enable_block_reuse");
  EXPECT_TRUE(merged[0].from_model);
  EXPECT_EQ(merged[1].value, "32");
  EXPECT_EQ(merged[1].model_value, "64");
  EXPECT_FALSE(merged[1].from_model);
}

TEST(MergeModelDefaults, InnerModelOfAWrapper_GivesNothing) {
  EXPECT_TRUE(merge_model_defaults("Gemma4ForConditionalGeneration", UserFields{}).empty());
  EXPECT_EQ(merge_model_defaults("Gemma4ForCausalLM", UserFields{}).size(), 1u);
  EXPECT_TRUE(merge_model_defaults("LlamaForCausalLM", UserFields{}).empty());
}

TEST(ModelDefaultSteps, Source_IsTheModelsFile) {
  std::vector<Step> steps;
  append_steps(merge_model_defaults("NemotronHForCausalLM", UserFields{}), steps);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].rule, "TRT-MODEL-DEFAULT");
  EXPECT_EQ(steps[0].source.file, "tensorrt_llm/_torch/models/modeling_nemotron_h.py");
}

TEST(DeepMerge, NestedObjects_AreFilledField) {
  const json::Value merged = deep_merge(
      parsed(R"({"kv_cache_config":{"dtype":"fp8","tokens_per_block":null},"x":[1]})"),
      parsed(R"({"kv_cache_config":{"dtype":"auto","tokens_per_block":64},"x":[2],"y":true})"));
  EXPECT_TRUE(
      merged ==
      parsed(R"({"kv_cache_config":{"dtype":"fp8","tokens_per_block":64},"x":[1],"y":true})"));
}

TEST(DeepMerge, FalseOfTheUser_IsAValue) {
  EXPECT_TRUE(deep_merge(parsed("false"), parsed("true")) == parsed("false"));
  EXPECT_TRUE(deep_merge(parsed("null"), parsed("true")) == parsed("true"));
}

TEST(EffectiveBackendName, Order_IsUserModelEngine) {
  const std::string user = "flashinfer";
  EXPECT_EQ(effective_backend_name("Gemma4ForCausalLM", &user).name, "flashinfer");
  EXPECT_EQ(effective_backend_name("Gemma4ForCausalLM", nullptr).name, "FLASHINFER");
  EXPECT_TRUE(effective_backend_name("Gemma4ForCausalLM", nullptr).from_model_default);
  EXPECT_EQ(effective_backend_name("LlamaForCausalLM", nullptr).name, "TRTLLM");
  EXPECT_FALSE(effective_backend_name("LlamaForCausalLM", nullptr).from_model_default);
}

TEST(FlashInferKernelOf, OnlyGemma4_SetsIt) {
  EXPECT_EQ(flashinfer_kernel_of("Gemma4ForCausalLM"), "trtllm-gen");
  EXPECT_EQ(flashinfer_kernel_of("LlamaForCausalLM"), "fa2");
}

}  // namespace
}  // namespace kernelpath::engines::trtllm
