// TensorRT-LLM's argument validation against the recorded answers.
#include "equality.h"
#include "features/answer.h"

#include <gtest/gtest.h>

namespace kernelpath::golden {
namespace {

TEST(TrtllmValidate, RecordedCases_AreAnsweredAlike) {
  const auto cases = read_cases("trtllm/validate.jsonl");
  ASSERT_GT(cases.size(), 300U);
  for (const Case& recorded : cases) {
    const auto answer = features::answer_validate("trtllm", recorded.in());
    ASSERT_TRUE(answer.has_value()) << recorded.id << ": " << answer.error().text();
    EXPECT_EQ(trtllm_difference(recorded.record, answer->out), "") << recorded.id;
    EXPECT_EQ(answer->rule, recorded.record.find("rule")->as_string()) << recorded.id;
  }
}

}  // namespace
}  // namespace kernelpath::golden
