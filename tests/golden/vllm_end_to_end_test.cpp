// Every recorded whole run of vLLM, of both versions, through answer_end_to_end().

#include "engines/vllm/answer_end_to_end.h"
#include "equality.h"
#include "json/writer.h"
#include "vllm_equality.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kernelpath::engines::vllm {
namespace {

std::string difference_of(const std::string& version, const golden::Case& recorded) {
  const auto answer =
      answer_end_to_end(built_in_profile(version), built_in_registry(version), recorded.in());
  return answer ? golden::vllm_end_to_end_difference(recorded.record, *answer)
                : answer.error().text();
}

void expect_recorded_answers(const std::string& version, std::size_t count) {
  const auto cases = golden::read_cases("vllm-" + version + "/end_to_end.jsonl");
  EXPECT_EQ(cases.size(), count);
  for (const golden::Case& recorded : cases) {
    EXPECT_EQ(difference_of(version, recorded), "") << json::to_text(recorded.in());
  }
}

TEST(VllmEndToEnd, EveryRecordedRunOf0251_IsAnswered) { expect_recorded_answers("0.25.1", 129); }

TEST(VllmEndToEnd, EveryRecordedRunOf0330_IsAnswered) { expect_recorded_answers("0.33.0", 125); }

// The recording with one member of `out` replaced.
json::Value changed(const golden::Case& recorded, std::string_view key, const json::Value& value) {
  std::vector<json::Member> out(recorded.out().members().begin(), recorded.out().members().end());
  for (json::Member& member : out) {
    if (member.key == key) member.value = value;
  }
  std::vector<json::Member> record(recorded.record.members().begin(),
                                   recorded.record.members().end());
  for (json::Member& member : record) {
    if (member.key == "out") member.value = json::Value::object(out);
  }
  return json::Value::object(std::move(record));
}

TEST(VllmEndToEnd, ChangedRecording_IsNoticed) {
  const std::string version = "0.25.1";
  for (const golden::Case& recorded : golden::read_cases("vllm-0.25.1/end_to_end.jsonl")) {
    if (recorded.out().find("kv_groups") == nullptr) continue;
    const auto answer =
        answer_end_to_end(built_in_profile(version), built_in_registry(version), recorded.in());
    ASSERT_TRUE(answer);
    for (const std::string_view key : {"errors", "layers", "kv_groups", "rewrites"}) {
      const json::Value other = json::Value::array({json::Value::object(
          {{.key = "stage", .value = json::Value::string("another"), .key_offset = 0}})});
      EXPECT_NE(golden::vllm_end_to_end_difference(changed(recorded, key, other), *answer), "")
          << recorded.id << ' ' << key;
    }
  }
}

}  // namespace
}  // namespace kernelpath::engines::vllm
