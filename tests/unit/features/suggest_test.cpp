#include "features/suggest.h"

#include "json/document.h"

#include <gmock/gmock.h>

namespace kernelpath::features {
namespace {

using testing::ElementsAre;

Context stated(const std::string& arguments, std::string_view engine = "trtllm") {
  Context context(*find_rule_table(engine));
  context.state(json::parse_object(arguments, "test")->root);
  return context;
}

SuggestOptions with_devices() {
  SuggestOptions options;
  options.devices = {{.id = "h200", .sm = 90, .memory_bytes = 150754820096},
                     {.id = "b200", .sm = 100, .memory_bytes = 193273528320}};
  return options;
}

std::vector<std::string> texts(const SearchResult& result) {
  std::vector<std::string> out;
  if (!result.changes) return out;
  for (const Change& change : *result.changes) out.push_back(change.text);
  return out;
}

bool clean_after(Context context, const SearchResult& result) {
  for (const Change& change : *result.changes) apply(change, context);
  return violations(context, {}, Level::kError).empty();
}

TEST(Suggest, WrongBackend_IsLeftOut) {
  const Context context = stated(R"({"enable_mla_skip_correction": true, "attn_backend": "foo"})");
  const auto result = suggest_all(context, with_devices());
  EXPECT_THAT(texts(result), ElementsAre("leave out --backend"));
  EXPECT_TRUE(clean_after(context, result));
}

TEST(Suggest, NumericBound_IsMet) {
  const Context context =
      stated(R"({"speculative_config": {"decoding_type": "PARD", "max_draft_len": -3}})");
  const auto result =
      suggest_for(context, *find_rule_table("trtllm")->find("SPEC-DRAFT-LEN"), with_devices());
  ASSERT_TRUE(result.changes.has_value());
  EXPECT_TRUE(clean_after(context, result));
  EXPECT_EQ(result.changes->size(), 1U);
}

TEST(Suggest, OnlyTheDeviceHelps_NamesADevice) {
  const Context context = stated(R"({"_sm": 90, "kv_cache_config": {"dtype": "nvfp4"}})");
  SuggestOptions options = with_devices();
  options.scope.only = {"KV-NVFP4-KERNEL"};
  const auto flags_first = suggest_all(context, options);
  EXPECT_THAT(texts(flags_first), ElementsAre("leave out --kv"));
}

TEST(Suggest, DeviceMemory_TakesTheFirstDeviceThatFits) {
  const Context context = stated(
      R"({"memory": {"weight_bytes": 160000000000}, "device": {"memory_bytes": 80000000000}})",
      "all");
  EXPECT_THAT(texts(suggest_all(context, with_devices())), ElementsAre("--device b200"));
}

TEST(Suggest, NoDeviceIsLargeEnough_SaysSo) {
  const Context context = stated(
      R"({"memory": {"weight_bytes": 999000000000}, "device": {"memory_bytes": 80000000000}})",
      "all");
  const SuggestOptions options = with_devices();
  const auto result = suggest_all(context, options);
  EXPECT_FALSE(result.changes.has_value());
  EXPECT_TRUE(result.searched_all);
  EXPECT_EQ(search_text(result, options.limits), "no change of options or device removes it");
}

TEST(Suggest, SeveralErrors_AreMendedTogether) {
  const Context context = stated(R"({
    "kv_cache_config": {"dtype": "int4", "free_gpu_memory_fraction": 1.5},
    "attn_backend": "VANILLA", "enable_mla_skip_correction": true,
    "encode_only": true, "mm_encoder_only": true,
    "speculative_config": {"decoding_type": "PARD", "max_draft_len": 0}})");
  SuggestOptions options = with_devices();
  options.limits.max_changes = 8;
  const auto result = suggest_all(context, options);
  ASSERT_TRUE(result.changes.has_value());
  EXPECT_TRUE(clean_after(context, result));
  EXPECT_EQ(result.changes->size(), 5U);
}

TEST(Suggest, ObjectLeftOut_TakesItsMembersAlong) {
  const Context context = stated(R"({"kv_cache_config": {"mixed_precision_kv": {"a": 1}},
    "speculative_config": {"decoding_type": "MTP", "max_draft_len": 1}})");
  const auto result = suggest_all(context, with_devices());
  EXPECT_THAT(texts(result), ElementsAre("leave out speculative_config"));
  Context after = context;
  apply(result.changes->front(), after);
  const Schema& schema = context.table().schema;
  EXPECT_TRUE(after.value(*schema.find("speculative_config.decoding_type")).is_null());
}

TEST(Suggest, OneRuleOfSeveral_LeavesTheOthersAlone) {
  const Context context = stated(R"({"kv_cache_config": {"dtype": "int4"}, "load_format": true})");
  const RuleTable& table = *find_rule_table("trtllm");
  EXPECT_THAT(texts(suggest_for(context, *table.find("LOAD-FORMAT-BOOL"), with_devices())),
              ElementsAre("leave out load_format"));
  EXPECT_THAT(texts(suggest_for(context, *table.find("KV-DTYPE"), with_devices())),
              ElementsAre("leave out --kv"));
}

TEST(Suggest, NothingViolated_NeedsNoChange) {
  const auto result = suggest_all(stated("{}"), with_devices());
  ASSERT_TRUE(result.changes.has_value());
  EXPECT_THAT(*result.changes, testing::IsEmpty());
}

TEST(Suggest, LimitReached_IsSaid) {
  const Context context = stated(R"({"kv_cache_config": {"dtype": "int4"}, "load_format": true})");
  SuggestOptions options = with_devices();
  options.limits.max_changes = 1;
  const auto result = suggest_for(context, *find_rule_table("trtllm")->find("KV-DTYPE"), options);
  EXPECT_TRUE(result.changes.has_value());
  options.limits.max_combinations = 0;
  const auto none = suggest_for(context, *find_rule_table("trtllm")->find("KV-DTYPE"), options);
  EXPECT_FALSE(none.changes.has_value());
  EXPECT_FALSE(none.searched_all);
}

}  // namespace
}  // namespace kernelpath::features
