#pragma once

#include "engines/llamacpp/answer.h"
#include "equality.h"
#include "json/writer.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::llamacpp {

inline constexpr std::size_t kShownFailures = 20;  // a wrong rule fails hundreds of cases

// Every recorded answer of golden/llamacpp/<op>.jsonl, exactly.
inline void expect_recorded_answers(std::string_view op, std::size_t count) {
  const auto cases = golden::read_cases("llamacpp/" + std::string(op) + ".jsonl");
  EXPECT_EQ(cases.size(), count);
  std::size_t failures = 0;
  for (const golden::Case& recorded : cases) {
    const auto answer = answer_op(built_in_profile(), op, recorded.in());
    const std::string difference =
        answer ? golden::exact_difference(recorded.record, *answer) : answer.error().text();
    if (difference.empty()) continue;
    if (++failures <= kShownFailures) {
      ADD_FAILURE() << "line " << recorded.id << ": " << json::to_text(recorded.in()) << '\n'
                    << difference;
    }
  }
  EXPECT_EQ(failures, 0U);
}

// Changing any member of a recorded answer must be noticed; evidence is none.
inline void expect_changes_noticed(std::string_view op, std::string_view evidence) {
  const auto cases = golden::read_cases("llamacpp/" + std::string(op) + ".jsonl");
  ASSERT_FALSE(cases.empty());
  const golden::Case& recorded = cases.front();
  const auto answer = answer_op(built_in_profile(), op, recorded.in());
  ASSERT_TRUE(answer);
  const auto members = recorded.out().members();
  for (std::size_t i = 0; i < members.size(); ++i) {
    std::vector<json::Member> changed(members.begin(), members.end());
    if (evidence.find(changed[i].key) != std::string_view::npos) continue;
    changed[i].value = json::Value::string("something else");
    const json::Value record = json::Value::object(
        {{.key = "in", .value = recorded.in(), .key_offset = 0},
         {.key = "out", .value = json::Value::object(std::move(changed)), .key_offset = 0}});
    EXPECT_NE(golden::exact_difference(record, *answer), "") << members[i].key;
  }
}

}  // namespace kernelpath::engines::llamacpp
