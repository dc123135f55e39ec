// Every recorded answer of DeepInfer, through answer().

#include "engines/deepinfer/answer.h"
#include "equality.h"
#include "json/writer.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace kernelpath::engines::deepinfer {
namespace {

constexpr const char* kFile = "deepinfer-0.1.0/resolve.jsonl";

TEST(DeepinferResolve, EveryRecordedAnswer_IsGiven) {
  const std::vector<golden::Case> cases = golden::read_cases(kFile);
  EXPECT_EQ(cases.size(), 448U);
  for (const golden::Case& recorded : cases) {
    const auto given = answer(recorded.in());
    const std::string difference =
        given ? golden::deepinfer_difference(recorded.record, *given) : given.error().text();
    if (difference.empty()) continue;
    ADD_FAILURE() << "line " << recorded.id << ": " << json::to_text(recorded.in()).substr(0, 120)
                  << '\n'
                  << difference;
  }
}

TEST(DeepinferResolve, ErrorTexts_NameWhatTheRecordedOnesName) {
  for (const golden::Case& recorded : golden::read_cases(kFile)) {
    const json::Value* error = recorded.out().find_non_null("error");
    if (error == nullptr) continue;
    const auto given = answer(recorded.in());
    ASSERT_TRUE(given) << recorded.id;
    const std::string text = given->find("error")->find("text")->as_string();
    // The end of a long text gives advice; what it is about stands before.
    const std::string wanted = error->find("text")->as_string();
    EXPECT_EQ(text.substr(0, 100), wanted.substr(0, 100)) << recorded.id;
  }
}

TEST(DeepinferResolve, ChangedRecording_IsNoticed) {
  const auto cases = golden::read_cases(kFile);
  ASSERT_FALSE(cases.empty());
  const golden::Case& recorded = cases.front();
  const auto given = answer(recorded.in());
  ASSERT_TRUE(given);
  std::vector<json::Member> members(recorded.out().members().begin(),
                                    recorded.out().members().end());
  members.front().value = json::Value::string("something else");
  const json::Value changed = json::Value::object(
      {{.key = "in", .value = recorded.in(), .key_offset = 0},
       {.key = "out", .value = json::Value::object(std::move(members)), .key_offset = 0}});
  EXPECT_NE(golden::deepinfer_difference(changed, *given), "");
}

}  // namespace
}  // namespace kernelpath::engines::deepinfer
