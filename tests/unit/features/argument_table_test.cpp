#include "features/argument_table.h"

#include "features/validate.h"
#include "json/document.h"

#include <gmock/gmock.h>

namespace kernelpath::features {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

json::Value object(const std::string& text) { return json::parse_object(text, "test")->root; }

ArgumentFaults faults(const std::string& arguments) {
  return check_arguments(*find_argument_table("trtllm"), object(arguments));
}

TEST(CheckArguments, KnownArguments_AreFine) {
  const auto found = faults(R"({"max_batch_size": 8, "kv_cache_config": {"dtype": "fp8"},
    "lora_config": {"anything": 1}, "speculative_config": {"decoding_type": "Eagle3",
    "max_draft_len": 3, "draft_len_schedule": {"4": 3}}, "_sm": 90})");
  EXPECT_THAT(found.unknown, IsEmpty());
  EXPECT_THAT(found.mistyped, IsEmpty());
  EXPECT_THAT(found.not_a_choice, IsEmpty());
}

TEST(CheckArguments, UnknownNames_AreFoundAtAnyDepthWithNearOnes) {
  const auto found = faults(R"({"attn_backand": "TRTLLM", "kv_cache_config": {"dtyp": "fp8"}})");
  EXPECT_THAT(found.unknown,
              ElementsAre(HasSubstr("near: attn_backend"), HasSubstr("kv_cache_config.dtype")));
}

TEST(CheckArguments, FieldOfAnotherVariant_IsUnknown) {
  const auto found =
      faults(R"({"speculative_config": {"decoding_type": "NGram", "sa_config": {}}})");
  EXPECT_THAT(found.unknown,
              ElementsAre(HasSubstr("NGram has no such argument; only Eagle3, MTP")));
}

TEST(CheckArguments, TypesChoicesAndBounds_AreChecked) {
  const auto found = faults(R"({"max_batch_size": "many", "allreduce_strategy": "FAST",
    "stream_interval": 0, "cp_config": {"cp_type": "helix"},
    "kv_cache_config": {"max_util_for_resume": 1.5, "kv_pool_rebalance_moving_average_decay": 1}})");
  EXPECT_THAT(found.mistyped, ElementsAre("max_batch_size: \"many\" is no whole number"));
  EXPECT_THAT(found.not_a_choice,
              ElementsAre(HasSubstr("allreduce_strategy: \"FAST\" is none of")));
  EXPECT_THAT(found.out_of_range,
              ElementsAre("stream_interval: 0 is not > 0",
                          "kv_cache_config.max_util_for_resume: 1.5 is not <= 1",
                          "kv_cache_config.kv_pool_rebalance_moving_average_decay: 1 is not < 1"));
}

TEST(CheckArguments, DeprecatedNames_SayWhatReplacesThem) {
  EXPECT_THAT(faults(R"({"decoding_config": {}})").deprecated,
              ElementsAre("decoding_config: deprecated: use speculative_config instead"));
  EXPECT_THAT(faults(R"({"decoding_config": null})").deprecated, IsEmpty());
}

TEST(StateFaults, Rules_SeeThem) {
  Context context(*find_rule_table("trtllm"));
  state_faults(context, faults(R"({"attn_backand": "TRTLLM", "stream_interval": 0})"));
  std::vector<std::string> ids;
  for (const Finding& finding : validate(context).findings) ids.push_back(finding.id);
  EXPECT_THAT(ids, ElementsAre("ARG-UNKNOWN", "ARG-RANGE"));
}

TEST(ArgumentTable, EveryFieldOfTheRules_IsAnArgument) {
  const ArgumentTable& table = *find_argument_table("trtllm");
  for (const FieldInfo& field : find_rule_table("trtllm")->schema.fields()) {
    if (field.kind != FieldKind::kArgument || field.name.starts_with("lora_config.")) continue;
    EXPECT_NE(table.find(field.name), nullptr) << field.name;
  }
}

}  // namespace
}  // namespace kernelpath::features
