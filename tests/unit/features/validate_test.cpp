#include "features/validate.h"

#include "json/document.h"

#include <gmock/gmock.h>

namespace kernelpath::features {
namespace {

Outcome validated(const std::string& arguments, const Scope& scope = {}) {
  Context context(*find_rule_table("trtllm"));
  context.state(json::parse_object(arguments, "test")->root);
  return validate(context, scope);
}

std::vector<std::string> ids(const Outcome& outcome, Level level) {
  std::vector<std::string> out;
  for (const Finding& finding : outcome.findings) {
    if (finding.level == level) out.push_back(finding.id);
  }
  return out;
}

constexpr const char* kFiveErrors = R"({
  "kv_cache_config": {"dtype": "int4", "free_gpu_memory_fraction": 1.5},
  "attn_backend": "VANILLA", "enable_mla_skip_correction": true,
  "encode_only": true, "mm_encoder_only": true,
  "speculative_config": {"decoding_type": "PARD", "max_draft_len": 0}})";

TEST(Validate, FiveViolatedRules_AreAllReportedWithPlaceAndRemedy) {
  const Outcome outcome = validated(kFiveErrors);
  EXPECT_THAT(ids(outcome, Level::kError),
              testing::ElementsAre("KV-FREE-FRACTION", "KV-DTYPE", "SKIPCORR-BACKEND",
                                   "MODE-ENCODE-VS-MMENC", "SPEC-DRAFT-LEN"));
  std::vector<std::string> places;
  for (const Finding& finding : outcome.findings) {
    if (finding.level != Level::kError) continue;
    places.push_back(finding.pointer);
    EXPECT_FALSE(finding.fix.empty()) << finding.id;
    EXPECT_FALSE(finding.message.empty()) << finding.id;
  }
  EXPECT_THAT(places,
              testing::ElementsAre("/kv_cache_config/free_gpu_memory_fraction",
                                   "/kv_cache_config/dtype", "/attn_backend", "/mm_encoder_only",
                                   "/speculative_config/max_draft_len"));
}

TEST(Validate, FirstError_DecidesTheEnginesAnswer) {
  const Outcome outcome = validated(kFiveErrors);
  EXPECT_EQ(outcome.worst, Level::kError);
  EXPECT_EQ(outcome.deciding->id, "KV-FREE-FRACTION");
}

TEST(Validate, NothingWrong_FindsNothing) {
  const Outcome outcome = validated("{}");
  EXPECT_EQ(outcome.worst, Level::kDerive);
  EXPECT_THAT(outcome.findings, testing::IsEmpty());
}

TEST(Validate, MessagesAndEffects_CarryTheValues) {
  const Outcome outcome = validated(R"({"kv_cache_config": {"dtype": "Fp8"}})");
  ASSERT_EQ(outcome.findings.size(), 2U);
  EXPECT_EQ(outcome.findings[0].message, "kv_cache_config.dtype Fp8 is read as fp8");
  EXPECT_EQ(outcome.findings[1].effects[0].first, "quant.kv_cache_quant_algo");
  EXPECT_EQ(outcome.findings[1].effects[0].second.as_string(), "FP8");
  EXPECT_EQ(outcome.findings[1].option, "--kv");
}

TEST(Validate, LaterRules_SeeWhatEarlierOnesChanged) {
  // Saving hidden states switches the overlap scheduler off, and that the early first token.
  const Outcome outcome = validated(R"({"enable_early_first_token_response": true,
      "speculative_config": {"decoding_type": "SaveHiddenStates"}})");
  EXPECT_THAT(ids(outcome, Level::kWarn), testing::ElementsAre("SPEC-SAVE-HIDDEN", "EFTR-OFF"));
}

TEST(Validate, AbsentArguments_CountOnlyWhereAllAreKnown) {
  const std::string arguments =
      R"({"speculative_config": {"decoding_type": "Eagle3", "max_draft_len": 3}})";
  EXPECT_THAT(ids(validated(arguments), Level::kError), testing::IsEmpty());
  EXPECT_THAT(ids(validated(arguments, {.all_arguments_known = true}), Level::kError),
              testing::ElementsAre("SPEC-DRAFT-MODEL-MISSING"));
}

TEST(Validate, SkippedRules_AreHiddenButStillChangeTheArguments) {
  const std::string arguments = R"({"enable_early_first_token_response": true,
      "speculative_config": {"decoding_type": "SaveHiddenStates"}})";
  EXPECT_THAT(ids(validated(arguments, {.skip = {"spec-save-hidden"}}), Level::kWarn),
              testing::ElementsAre("EFTR-OFF"));
  EXPECT_THAT(ids(validated(arguments, {.only = {"SPEC-SAVE-HIDDEN"}}), Level::kWarn),
              testing::ElementsAre("SPEC-SAVE-HIDDEN"));
}

TEST(Validate, RuleWithItems_FindsEachOfThem) {
  const Outcome outcome = validated(
      R"({"arguments": {"unknown": ["attn_backand: no such argument", "kv: no such argument"]}})");
  ASSERT_EQ(outcome.findings.size(), 2U);
  EXPECT_EQ(outcome.findings[0].field, "attn_backand");
  EXPECT_EQ(outcome.findings[0].message, "attn_backand: no such argument");
}

TEST(Validate, SeveralFieldsAtFault_PointsAtTheStatedOne) {
  const Outcome outcome = validated(R"({"_sm": 90, "use_cute_dsl_bf16_bmm": true})");
  ASSERT_FALSE(outcome.findings.empty());
  EXPECT_EQ(outcome.findings[0].field, "use_cute_dsl_bf16_bmm");
}

TEST(Judge, Verdict_IsThatOfValidate) {
  Context context(*find_rule_table("trtllm"));
  context.state(json::parse_object(kFiveErrors, "test")->root);
  const Judgement judgement = judge(context);
  EXPECT_EQ(judgement.worst, Level::kError);
  EXPECT_EQ(judgement.deciding->id, "KV-FREE-FRACTION");
}

}  // namespace
}  // namespace kernelpath::features
