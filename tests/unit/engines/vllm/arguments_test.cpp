#include "engines/vllm/arguments.h"

#include "engines/vllm/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelpath::engines::vllm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Deployment with_settings(std::vector<std::pair<std::string, std::string>> settings) {
  Deployment out;
  out.settings = std::move(settings);
  return out;
}

Result<Arguments> read_newest(const Deployment& deployment) {
  return Arguments::read(built_in_settings("0.33.0"), deployment);
}

Error error_of(const Deployment& deployment, std::string_view version = "0.33.0") {
  const auto arguments = Arguments::read(built_in_settings(version), deployment);
  EXPECT_FALSE(arguments);
  return arguments ? Error{} : arguments.error();
}

TEST(Settings, EveryRelease_HasNestedFieldsAndVariables) {
  for (const std::string& version : built_in_versions()) {
    const SettingTable& table = built_in_settings(version);
    EXPECT_EQ(table.version(), version);
    EXPECT_NE(table.find("attention_config.backend"), nullptr);
    EXPECT_NE(table.find("speculative_config.method"), nullptr);
    EXPECT_EQ(table.find("attention_config.no_such_field"), nullptr);
    EXPECT_THAT(table.variables(), ::testing::Contains("VLLM_MLA_DISABLE"));
  }
}

TEST(Settings, MapField_HoldsItsEntries) {
  const SettingTable& table = built_in_settings("0.33.0");
  const SettingInfo* map = table.find("attention_config.backend_per_kind");
  ASSERT_NE(map, nullptr);
  EXPECT_EQ(table.find("attention_config.backend_per_kind.sliding_window"), map);
}

TEST(ParseSettings, BrokenTable_NamesFileAndPlace) {
  const auto parsed =
      parse_settings(R"({"schema":"kernelpath/engine-profile"})", "x/settings.json");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, ErrorCode::kInputSchema);
  EXPECT_THAT(parsed.error().text(), HasSubstr("x/settings.json"));
}

TEST(Arguments, CommonOptions_AreTheEnginesOwn) {
  Deployment deployment;
  deployment.backend = "flash_attn";
  deployment.kv_dtype = "FP8";
  deployment.dtype = "bf16";
  deployment.page_size = 32;
  deployment.dcp = 2;
  deployment.speculative = "draft";
  const auto arguments = read_newest(deployment);
  ASSERT_TRUE(arguments) << arguments.error().text();
  EXPECT_EQ(arguments->text("kv_cache_dtype"), "fp8");
  EXPECT_EQ(arguments->text("dtype"), "bfloat16");
  EXPECT_EQ(arguments->integer("block_size"), 32);
  EXPECT_EQ(arguments->integer("decode_context_parallel_size"), 2);
  EXPECT_EQ(arguments->text("speculative_config.method"), "draft_model");
  ASSERT_NE(arguments->backend(), nullptr);
  EXPECT_EQ(arguments->backend()->set_by, "--attention-backend");
}

TEST(Arguments, Defaults_AreTheTables) {
  const auto arguments = read_newest({});
  ASSERT_TRUE(arguments);
  EXPECT_EQ(arguments->text("kv_cache_dtype"), "auto");
  EXPECT_EQ(arguments->number("gpu_memory_utilization"), 0.92);
  EXPECT_EQ(arguments->text("block_size"), std::nullopt);
  EXPECT_EQ(arguments->optional_flag("enable_prefix_caching"), std::nullopt);
  EXPECT_EQ(arguments->backend(), nullptr);
}

TEST(Arguments, ConfigurationAsJson_SetsItsFields) {
  const auto arguments = read_newest(with_settings(
      {{"compilation_config", R"({"cudagraph_mode":"FULL"})"},
       {"attention_config", R"({"use_trtllm_attention":false,"flash_attn_version":2})"}}));
  ASSERT_TRUE(arguments) << arguments.error().text();
  EXPECT_EQ(arguments->text("compilation_config.cudagraph_mode"), "FULL");
  EXPECT_EQ(arguments->optional_flag("attention_config.use_trtllm_attention"), false);
  EXPECT_EQ(arguments->integer("attention_config.flash_attn_version"), 2);
}

TEST(Arguments, List_IsJsonOrWords) {
  const auto words = read_newest(with_settings({{"kv_cache_dtype_skip_layers", "0, 3"}}));
  ASSERT_TRUE(words);
  EXPECT_THAT(words->list("kv_cache_dtype_skip_layers"), ElementsAre("0", "3"));
  const auto array = read_newest(with_settings({{"kv_cache_dtype_skip_layers", R"(["0"])"}}));
  ASSERT_TRUE(array);
  EXPECT_THAT(array->list("kv_cache_dtype_skip_layers"), ElementsAre("0"));
}

TEST(Arguments, AutoBackend_IsNone) {
  Deployment deployment;
  deployment.backend = "Auto";
  const auto arguments = read_newest(deployment);
  ASSERT_TRUE(arguments);
  EXPECT_EQ(arguments->backend(), nullptr);
}

TEST(Arguments, BackendOfTheOtherRelease_SaysWhichHasIt) {
  Deployment deployment;
  deployment.backend = "b12x";
  const Error error = error_of(deployment, "0.25.1");
  EXPECT_EQ(error.code, ErrorCode::kUsageUnknown);
  EXPECT_THAT(error.message, HasSubstr("vllm@0.33.0 has it"));
}

TEST(Arguments, KvDtypeOfTheOtherRelease_SaysWhichHasIt) {
  Deployment deployment;
  deployment.kv_dtype = "nvfp4_4over6";
  EXPECT_THAT(error_of(deployment, "0.25.1").message, HasSubstr("vllm@0.33.0 has it"));
}

TEST(Arguments, UnknownBackend_NamesTheNearest) {
  Deployment deployment;
  deployment.backend = "FLASHINFR";
  const Error error = error_of(deployment);
  EXPECT_THAT(error.near_matches, ::testing::Contains("FLASHINFER"));
}

TEST(Arguments, RegisteredBackend_IsNoUnknownName) {
  Deployment deployment = with_settings({{"register_backend.MINE", "my.module.Backend"}});
  deployment.backend = "mine";
  EXPECT_TRUE(read_newest(deployment));
}

TEST(Arguments, BackendGivenInBothWays_IsAConflict) {
  Deployment deployment = with_settings({{"attention_config.backend", "FLASH_ATTN"}});
  deployment.backend = "FLASH_ATTN";
  const Error error = error_of(deployment);
  EXPECT_EQ(error.code, ErrorCode::kUsageConflict);
  EXPECT_THAT(error.text(), HasSubstr("--attention-backend"));
}

TEST(Arguments, OptionAndSettingThatDiffer_AreAConflict) {
  Deployment deployment = with_settings({{"kv_cache_dtype", "auto"}});
  deployment.kv_dtype = "fp8";
  EXPECT_EQ(error_of(deployment).code, ErrorCode::kUsageConflict);
}

TEST(Arguments, WrongType_SaysWhatItTakes) {
  const Error error = error_of(with_settings({{"enforce_eager", "maybe"}}));
  EXPECT_EQ(error.code, ErrorCode::kUsage);
  EXPECT_THAT(error.message, HasSubstr("true or false"));
}

TEST(Arguments, UnknownArgument_NamesTheNearest) {
  const Error error = error_of(with_settings({{"kv_cache_dtyp", "fp8"}}));
  EXPECT_EQ(error.code, ErrorCode::kUsageUnknown);
  EXPECT_THAT(error.near_matches, ::testing::Contains("kv_cache_dtype"));
}

}  // namespace
}  // namespace kernelpath::engines::vllm
