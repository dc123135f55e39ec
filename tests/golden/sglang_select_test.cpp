// Every recorded launch of SGLang through answer_select().

#include "engines/sglang/answer_select.h"
#include "engines/sglang/profile.h"
#include "engines/sglang/rules.h"
#include "equality.h"
#include "json/writer.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::sglang {
namespace {

constexpr std::size_t kShownFailures = 20;  // a wrong rule fails hundreds of cases

// Every rewrite names a rule that --explain knows.
void expect_known_rules(const json::Value& answer) {
  for (const json::Value& rewrite : answer.find("rewrites")->items()) {
    const std::string& text = rewrite.as_string();
    const std::size_t at = text.rfind(" [");
    ASSERT_NE(at, std::string::npos) << text;
    const std::string id = text.substr(at + 2, text.size() - at - 3);
    EXPECT_NE(find_rule(id), nullptr) << text;
  }
}

void expect_recorded_answers(const std::string& file, std::size_t count) {
  const std::vector<golden::Case> cases = golden::read_cases("sglang-0.5.23/" + file);
  EXPECT_EQ(cases.size(), count);
  std::size_t failures = 0;
  for (const golden::Case& recorded : cases) {
    const auto answer = answer_select(built_in_profile(), recorded.in());
    const std::string difference =
        answer ? golden::sglang_select_difference(recorded.record, *answer) : answer.error().text();
    if (answer) expect_known_rules(*answer);
    if (difference.empty()) continue;
    if (++failures <= kShownFailures) {
      ADD_FAILURE() << "line " << recorded.id << ": " << json::to_text(recorded.in()) << '\n'
                    << difference;
    }
  }
  EXPECT_EQ(failures, 0U);
}

TEST(SglangSelect, EveryRecordedAnswer_IsGiven) { expect_recorded_answers("select.jsonl", 2378); }

TEST(SglangSelect, EveryFurtherRecordedAnswer_IsGiven) {
  expect_recorded_answers("select-2.jsonl", 407);
}

// `out` of the case with another value for one of its members.
json::Value changed_record(const golden::Case& recorded, std::string_view key, json::Value value) {
  std::vector<json::Member> members(recorded.out().members().begin(),
                                    recorded.out().members().end());
  for (json::Member& member : members) {
    if (member.key == key) member.value = value;
  }
  return json::Value::object(
      {{.key = "in", .value = recorded.in(), .key_offset = 0},
       {.key = "out", .value = json::Value::object(std::move(members)), .key_offset = 0}});
}

TEST(SglangSelect, ChangedRecording_IsNoticed) {
  const auto cases = golden::read_cases("sglang-0.5.23/select.jsonl");
  ASSERT_FALSE(cases.empty());
  const golden::Case& recorded = cases.front();
  const auto answer = answer_select(built_in_profile(), recorded.in());
  ASSERT_TRUE(answer);
  ASSERT_EQ(golden::sglang_select_difference(recorded.record, *answer), "");
  const json::Value rewrite =
      json::Value::array({json::Value::string("set page_size: 1 -> 2 [f]")});
  for (const auto& changed :
       {changed_record(recorded, "prefill_backend", json::Value::string("another")),
        changed_record(recorded, "rewrites", rewrite),
        changed_record(recorded, "rewrites", json::Value::array({})),
        changed_record(recorded, "page_size", json::Value::integer(2))}) {
    EXPECT_NE(golden::sglang_select_difference(changed, *answer), "") << json::to_text(changed);
  }
}

}  // namespace
}  // namespace kernelpath::engines::sglang
