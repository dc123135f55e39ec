// Every recorded answer about TensorRT-LLM's attention side, through answer_backend().

#include "engines/trtllm/answer_backend.h"
#include "equality.h"
#include "json/writer.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace kernelpath::engines::trtllm {
namespace {

TEST(TrtllmBackend, EveryRecordedAnswer_IsGiven) {
  const std::vector<golden::Case> cases = golden::read_cases("trtllm/backend.jsonl");
  EXPECT_EQ(cases.size(), 594U);
  std::set<std::string> ops;
  for (const golden::Case& recorded : cases) {
    ops.insert(recorded.in().find("op")->as_string());
    const auto answer = answer_backend(recorded.in());
    ASSERT_TRUE(answer) << recorded.id << ": " << answer.error().text();
    EXPECT_EQ(golden::trtllm_difference(recorded.record, *answer), "")
        << recorded.id << ": " << json::to_text(recorded.in());
  }
  EXPECT_EQ(ops.size(), backend_ops().size()) << "an op without a recorded answer";
}

TEST(TrtllmBackend, ChangedRecording_IsNoticed) {
  for (const golden::Case& recorded : golden::read_cases("trtllm/backend.jsonl")) {
    if (recorded.id != "bk-000") continue;
    const auto answer = answer_backend(recorded.in());
    ASSERT_TRUE(answer);
    std::vector<json::Member> members(recorded.out().members().begin(),
                                      recorded.out().members().end());
    members.front().value = json::Value::string("TrtllmAttention");
    const json::Value changed = json::Value::object(
        {{.key = "in", .value = recorded.in(), .key_offset = 0},
         {.key = "out", .value = json::Value::object(std::move(members)), .key_offset = 0}});
    EXPECT_NE(golden::trtllm_difference(changed, *answer), "");
    return;
  }
  FAIL() << "bk-000 is not recorded";
}

}  // namespace
}  // namespace kernelpath::engines::trtllm
