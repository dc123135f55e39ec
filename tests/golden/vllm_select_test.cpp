// Every recorded answer of vLLM's selectors, of both versions, through answer_select().

#include "engines/vllm/answer_select.h"
#include "equality.h"
#include "json/writer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kernelpath::engines::vllm {
namespace {

constexpr std::size_t kShownFailures = 20;  // a wrong rule fails thousands of cases

void expect_recorded_answers(const std::string& version, std::size_t count) {
  const std::vector<golden::Case> cases = golden::read_cases("vllm-" + version + "/select.jsonl");
  EXPECT_EQ(cases.size(), count);
  const Profile& profile = built_in_profile(version);
  std::size_t failures = 0;
  for (const golden::Case& recorded : cases) {
    const auto answer = answer_select(profile, recorded.in());
    const std::string difference =
        answer ? golden::vllm_select_difference(recorded.record, *answer) : answer.error().text();
    if (difference.empty()) continue;
    if (++failures <= kShownFailures) {
      ADD_FAILURE() << "line " << recorded.id << ": " << json::to_text(recorded.in()) << '\n'
                    << difference;
    }
  }
  EXPECT_EQ(failures, 0U);
}

TEST(VllmSelect, EveryRecordedAnswerOf0251_IsGiven) { expect_recorded_answers("0.25.1", 4713); }

TEST(VllmSelect, EveryRecordedAnswerOf0330_IsGiven) { expect_recorded_answers("0.33.0", 5277); }

TEST(VllmSelect, ChangedRecording_IsNoticed) {
  const auto cases = golden::read_cases("vllm-0.25.1/select.jsonl");
  ASSERT_FALSE(cases.empty());
  const golden::Case& recorded = cases.front();
  const auto answer = answer_select(built_in_profile("0.25.1"), recorded.in());
  ASSERT_TRUE(answer);
  std::vector<json::Member> members(recorded.out().members().begin(),
                                    recorded.out().members().end());
  members.front().value = json::Value::string("ANOTHER_BACKEND");
  const json::Value changed = json::Value::object(
      {{.key = "in", .value = recorded.in(), .key_offset = 0},
       {.key = "out", .value = json::Value::object(std::move(members)), .key_offset = 0}});
  EXPECT_NE(golden::vllm_select_difference(changed, *answer), "");
}

}  // namespace
}  // namespace kernelpath::engines::vllm
