#include "checkpoint_runner.h"
#include "thread_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

// Models on several ranks, which are threads here. tests/cli starts real ones.
namespace kernelpath::model {
namespace {

using golden::CheckpointRunner;
using testing::run_ranks;

struct Grid {
  std::string checkpoint;
  std::int64_t tp = 1;
  std::int64_t dcp = 1;
};

std::string folder_of(const std::string& name) {
  return std::string(KERNELPATH_TEST_DATA) + "/checkpoints/" + name;
}

// Long enough for several pages, windows and chunks on every rank.
std::vector<std::int32_t> prompt() {
  std::vector<std::int32_t> out(70);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::int32_t>(i * 37 % 500);
  return out;
}

// The logits of a prompt in two chunks, and of some tokens behind it.
std::vector<float> logits_of(CheckpointRunner& runner) {
  auto out = runner.prefill(prompt());
  EXPECT_TRUE(out) << out.error().text();
  if (!out) return {};
  for (const std::int32_t token : {5, 77, 300}) {
    const auto next = runner.decode(token);
    EXPECT_TRUE(next);
    if (!next) return {};
    out->insert(out->end(), next->begin(), next->end());
  }
  return *out;
}

std::vector<float> logits_of_rank(const Grid& grid, comm::Communicator& world) {
  auto arranged = comm::RankGrid::make(world, grid.tp, grid.dcp);
  EXPECT_TRUE(arranged);
  auto runner =
      CheckpointRunner::open(folder_of(grid.checkpoint), {.threads = world.rank() % 2 + 1,
                                                          .page_size = 4,
                                                          .chunk = 48,
                                                          .ranks = arranged->placement()});
  EXPECT_TRUE(runner) << runner.error().text();
  return runner ? logits_of(**runner) : std::vector<float>();
}

class RanksOf : public ::testing::TestWithParam<Grid> {};

TEST_P(RanksOf, LogitsAreThoseOfOneRank_AndTheSameOnAll) {
  const Grid& grid = GetParam();
  auto alone = CheckpointRunner::open(folder_of(grid.checkpoint), {.page_size = 4});
  ASSERT_TRUE(alone);
  const std::vector<float> expected = logits_of(**alone);
  std::vector<std::vector<float>> found(static_cast<std::size_t>(grid.tp * grid.dcp));
  run_ranks(static_cast<int>(found.size()), [&](comm::Communicator& world) {
    found[static_cast<std::size_t>(world.rank())] = logits_of_rank(grid, world);
  });
  for (const std::vector<float>& logits : found) {
    ASSERT_EQ(logits.size(), expected.size());
    EXPECT_EQ(std::memcmp(logits.data(), found[0].data(), logits.size() * sizeof(float)), 0);
  }
  float largest = 0.0F;
  float difference = 0.0F;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    difference = std::max(difference, std::abs(expected[i] - found[0][i]));
  }
  // Batches of AMX keep 17 bits of an activation, and a rank's halves of a sum round for
  // themselves.
  EXPECT_LE(difference, 5e-5F * std::max(largest, 1.0F));
  EXPECT_GT(largest, 0.0F);
}

std::vector<Grid> grids() {
  std::vector<Grid> out;
  for (const char* const name : {"cohere2",
                                 "deepseek-v2-noq-greedy",
                                 "deepseek-v2-qlora-group",
                                 "deepseek-v3",
                                 "deepseek-v3-noq-kimi",
                                 "deepseek-v32-dsa",
                                 "gemma2",
                                 "gemma3-text",
                                 "glm-moe-dsa",
                                 "glm4",
                                 "glm4-moe",
                                 "gpt-oss",
                                 "gpt-oss-mxfp4",
                                 "granite",
                                 "kimi-linear",
                                 "llama-dynamic-ntk",
                                 "llama-fp8-channel-ct",
                                 "llama-mha-untied-bias-f32",
                                 "llama-nvfp4-ct",
                                 "llama4-text",
                                 "mistral-nowindow",
                                 "mistral-swa",
                                 "mixtral",
                                 "olmo2",
                                 "phi3-longrope",
                                 "qwen2-bias",
                                 "qwen3-moe",
                                 "qwen3-qknorm",
                                 "smollm3"}) {
    out.push_back({name, 2, 1});
    out.push_back({name, 1, 2});
  }
  for (const char* const name : {"gpt-oss", "deepseek-v3", "llama4-text", "deepseek-v32-dsa"}) {
    out.push_back({name, 2, 2});
  }
  // More ranks than KV heads; a norm over heads of which several ranks have the same.
  out.push_back({"mistral-nowindow", 4, 1});
  out.push_back({"olmo2", 4, 1});
  out.push_back({"llama-sharded", 3, 1});
  out.push_back({"qwen3-fp8-block", 1, 3});
  return out;
}

INSTANTIATE_TEST_SUITE_P(Model, RanksOf, ::testing::ValuesIn(grids()), [](const auto& test) {
  std::string name = test.param.checkpoint + "_tp" + std::to_string(test.param.tp) + "_dcp" +
                     std::to_string(test.param.dcp);
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace kernelpath::model
