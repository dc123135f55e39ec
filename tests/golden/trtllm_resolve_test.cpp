// Every recorded answer about TensorRT-LLM's model classes, through answer_resolve().
#include "engines/trtllm/answer_resolve.h"
#include "equality.h"
#include "json/writer.h"

#include <gtest/gtest.h>

#include <set>

namespace kernelpath::engines::trtllm {
namespace {

constexpr const char* kFile = "trtllm/resolve.jsonl";

TEST(TrtllmResolve, EveryRecordedAnswer_IsGiven) {
  std::set<std::string> ops;
  const auto cases = golden::read_cases(kFile);
  for (const golden::Case& recorded : cases) {
    ops.insert(recorded.in().find("op")->as_string());
    const auto answer = answer_resolve(recorded.in());
    ASSERT_TRUE(answer) << recorded.id << ": " << answer.error().text();
    EXPECT_EQ(golden::trtllm_difference(recorded.record, *answer), "")
        << recorded.id << ": " << json::to_text(recorded.in());
    // The rules ask for the ids of the steps only; ours carry the recorded fields as well.
    EXPECT_TRUE(*answer->find("steps") == *recorded.out().find("steps"))
        << recorded.id << ": " << json::to_text(*answer);
  }
  EXPECT_EQ(cases.size(), 231U);
  for (const std::string& op : ops) EXPECT_TRUE(is_resolve_op(op)) << op;
  EXPECT_EQ(ops.size(), 9U);
}

// A recorded answer with one member of `out` replaced.
json::Value changed(const json::Value& record, const std::string& key, const json::Value& value) {
  std::vector<json::Member> out = {{.key = key, .value = value}};
  for (const json::Member& member : record.find("out")->members()) {
    if (member.key != key) out.push_back(member);
  }
  return json::Value::object({{.key = "in", .value = *record.find("in")},
                              {.key = "out", .value = json::Value::object(std::move(out))}});
}

TEST(TrtllmResolve, ChangedRecord_IsNoticed) {
  for (const golden::Case& recorded : golden::read_cases(kFile)) {
    const auto answer = answer_resolve(recorded.in());
    ASSERT_TRUE(answer) << recorded.id;
    const json::Value other = json::Value::string("SomethingElse");
    const json::Value step = json::Value::object({{.key = "rule", .value = other}});
    for (const json::Member& member : recorded.out().members()) {
      const json::Value value = member.key == "steps" ? json::Value::array({step}) : other;
      EXPECT_NE(golden::trtllm_difference(changed(recorded.record, member.key, value), *answer), "")
          << recorded.id << " with another " << member.key;
    }
  }
}

}  // namespace
}  // namespace kernelpath::engines::trtllm
