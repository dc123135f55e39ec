// The models of tests/data/checkpoints against what their golden.json records: greedy tokens, and
// the five largest logits of four steps.
#include "base/file.h"
#include "checkpoint_runner.h"
#include "json/document.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace kernelpath::golden {
namespace {

constexpr float kLogitTolerance = 2e-3F;
constexpr double kNearTie = 1e-3;
const std::string kFolder = std::string(KERNELPATH_TEST_DATA) + "/checkpoints";

std::vector<std::int32_t> ids_of(const json::Value& list) {
  std::vector<std::int32_t> out;
  for (const json::Value& item : list.items()) {
    out.push_back(static_cast<std::int32_t>(item.as_integer()));
  }
  return out;
}

std::int32_t argmax(const std::vector<float>& logits) {
  return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

void expect_logits(const json::Value* recorded, const std::vector<float>& logits,
                   const std::string& where) {
  if (recorded == nullptr) return;
  const json::Value& ids = *recorded->find("ids");
  const json::Value& values = *recorded->find("values");
  for (std::size_t i = 0; i < ids.items().size(); ++i) {
    const auto id = static_cast<std::size_t>(ids.items()[i].as_integer());
    EXPECT_NEAR(logits[id], values.items()[i].as_double(), kLogitTolerance)
        << where << ", token " << id;
  }
}

// One recorded prompt: tokens up to the first near-tie, and the logits on the way.
void expect_prompt(CheckpointRunner& runner, const json::Value& prompt) {
  const std::string id = std::to_string(prompt.find("id")->as_integer());
  const std::vector<std::int32_t> outputs = ids_of(*prompt.find("output_ids"));
  const auto gaps = prompt.find("gaps")->items();
  const json::Value& recorded = *prompt.find("logits");
  auto logits = runner.prefill(ids_of(*prompt.find("prompt_ids")));
  for (std::size_t step = 0; step < outputs.size(); ++step) {
    ASSERT_TRUE(logits) << logits.error().text();
    const std::string where = "prompt " + id + ", step " + std::to_string(step);
    const std::string name = step == 0 ? "prompt_last" : "step" + std::to_string(step);
    expect_logits(recorded.find(name), *logits, where);
    if (gaps[step].as_double() < kNearTie) return;
    ASSERT_EQ(argmax(*logits), outputs[step]) << where;
    if (step + 1 < outputs.size()) logits = runner.decode(outputs[step]);
  }
}

class Checkpoint : public testing::TestWithParam<std::string> {
 protected:
  static json::Document golden() {
    auto file = read_file(kFolder + "/" + GetParam() + "/golden.json", 1 << 22);
    return *json::parse(std::move(file->text), "golden.json");
  }
  static void expect_all(const CheckpointRunner::Options& options) {
    auto runner = CheckpointRunner::open(kFolder + "/" + GetParam(), options);
    ASSERT_TRUE(runner) << runner.error().text();
    const json::Document recorded = golden();
    for (const json::Value& prompt : recorded.root.find("prompts")->items()) {
      expect_prompt(**runner, prompt);
      if (HasFatalFailure()) return;
    }
  }
};

TEST_P(Checkpoint, GreedyTokensAndLogits_AreTheRecordedOnes) { expect_all({}); }

TEST_P(Checkpoint, ThreeThreadsChunksAndSmallPages_GiveTheSame) {
  expect_all({.threads = 3, .page_size = 4, .chunk = 37});
}

std::vector<std::string> checkpoints() {
  auto names = list_folder(kFolder);
  return names ? *names : std::vector<std::string>{};
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, Checkpoint, testing::ValuesIn(checkpoints()), test_name);

}  // namespace
}  // namespace kernelpath::golden
