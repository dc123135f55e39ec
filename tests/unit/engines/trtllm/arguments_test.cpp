#include "engines/trtllm/arguments.h"

#include <gtest/gtest.h>

namespace kernelpath::engines::trtllm {
namespace {

Deployment with_settings(std::vector<std::pair<std::string, std::string>> settings) {
  Deployment out;
  out.settings = std::move(settings);
  return out;
}

TEST(Arguments, NothingStated_AreTheEnginesDefaults) {
  const auto arguments = Arguments::read({});
  ASSERT_TRUE(arguments);
  EXPECT_EQ(arguments->text("attn_backend"), "TRTLLM");
  EXPECT_EQ(arguments->set_by("attn_backend"), "engine default");
  EXPECT_EQ(arguments->text("max_seq_len"), std::nullopt);
  EXPECT_EQ(arguments->number("kv_cache_config.free_gpu_memory_fraction"), 0.9);
  EXPECT_EQ(arguments->integer("kv_cache_config.tokens_per_block"), 32);
}

TEST(Arguments, CommonOption_TakesAnyCaseAndTheEnginesOwnKeepsIt) {
  Deployment deployment;
  deployment.backend = "flashinfer";
  EXPECT_EQ(Arguments::read(deployment)->text("attn_backend"), "FLASHINFER");
  EXPECT_EQ(Arguments::read(with_settings({{"attn_backend", "flashinfer"}}))->text("attn_backend"),
            "flashinfer");
}

TEST(Arguments, UnknownArgument_IsRefusedWithNearMatches) {
  const auto arguments = Arguments::read(with_settings({{"kv_cache_config.dtyp", "fp8"}}));
  ASSERT_FALSE(arguments);
  EXPECT_EQ(arguments.error().code, ErrorCode::kUsageUnknown);
  EXPECT_EQ(arguments.error().near_matches.at(0), "kv_cache_config.dtype");
}

TEST(Arguments, WrongType_NamesWhatTheArgumentTakes) {
  for (const auto& [name, value] :
       {std::pair{"enable_attention_dp", "yes"}, std::pair{"max_batch_size", "8.5"},
        std::pair{"mla_skip_correction_threshold", "big"}}) {
    const auto arguments = Arguments::read(with_settings({{name, value}}));
    ASSERT_FALSE(arguments) << name;
    EXPECT_EQ(arguments.error().code, ErrorCode::kUsage);
    EXPECT_EQ(arguments.error().value, value);
  }
}

TEST(Arguments, OptionAndSettingThatDiffer_AreAConflict) {
  Deployment deployment = with_settings({{"kv_cache_config.dtype", "nvfp4"}});
  deployment.kv_dtype = "fp8";
  ASSERT_FALSE(Arguments::read(deployment));
  EXPECT_EQ(Arguments::read(deployment).error().code, ErrorCode::kUsageConflict);
  deployment.kv_dtype = "nvfp4";
  EXPECT_TRUE(Arguments::read(deployment));
}

TEST(Arguments, ModelDefault_FillsOnlyWhatTheUserLeftAlone) {
  auto arguments = Arguments::read(with_settings({{"attn_backend", "TRTLLM"}}));
  ASSERT_TRUE(arguments);
  EXPECT_FALSE(arguments->set_model_default("attn_backend", "FLASHINFER"));
  EXPECT_EQ(arguments->text("attn_backend"), "TRTLLM");
  EXPECT_TRUE(arguments->set_model_default("kv_cache_config.enable_block_reuse", "false"));
  EXPECT_FALSE(arguments->flag("kv_cache_config.enable_block_reuse"));
  EXPECT_EQ(arguments->set_by("kv_cache_config.enable_block_reuse"), "model default");
}

}  // namespace
}  // namespace kernelpath::engines::trtllm
