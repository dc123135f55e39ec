#include "model_files.h"
#include "ranks_launch.h"
#include "run_logits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

// Weights in the formats of files, divided among ranks.
namespace kernelpath::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The logits of logits_of(), from two ranks.
std::vector<float> logits_of_ranks(const std::string& model) {
  const TemporaryFolder folder;
  const std::string file = folder.path("logits.bin");
  const Outcome outcome = run_ranks(2, {model, "--tp", "2", "--prompt-tokens",
                                        "5,17,300,42,8,8,120,1,2,3,77,250,31,64,128,200,11,13",
                                        "-n", "3", "--ignore-eos", "--dump-logits", file});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string bytes = read_file(file);
  std::vector<float> out(bytes.size() / sizeof(float));
  std::memcpy(out.data(), bytes.data(), out.size() * sizeof(float));
  return out;
}

class GgufRanks : public ::testing::TestWithParam<std::string> {};

TEST_P(GgufRanks, LogitsAreThoseOfOneRank) {
  KERNELPATH_NEEDS_RANKS();
  const TemporaryFolder folder;
  const ModelShape shape{.family = "qwen2", .hidden = 512, .heads = 8};
  const std::string file = folder.path("m.gguf");
  write_gguf(file, shape, random_tensors(shape), GetParam());
  expect_same_logits(logits_of_ranks(file), logits_of(file));
}

INSTANTIATE_TEST_SUITE_P(Run, GgufRanks,
                         ::testing::Values("f16", "q8_0", "q4_0", "q5_0", "q4_K", "q6_K"),
                         [](const auto& test) { return test.param; });

TEST(RanksRefused, BlocksOfAGgufFile_AreNotCut) {
  KERNELPATH_NEEDS_RANKS();
  const TemporaryFolder folder;
  const ModelShape shape;  // o_proj has 256 columns: one block of q4_K
  const std::string file = folder.path("m.gguf");
  write_gguf(file, shape, random_tensors(shape), "q4_K");
  const Outcome outcome = run_ranks(2, {file, "--tp", "2", "--prompt-tokens", "5"});
  EXPECT_EQ(outcome.exit_code, 4) << outcome.err;
  EXPECT_EQ(count_of(outcome.err, "llm-run: error["), 1) << outcome.err;
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("model.layers.0.self_attn.o_proj.weight"),
                    HasSubstr("128 of 256 columns"), HasSubstr("q4_K"),
                    HasSubstr("blocks of 256 columns"), HasSubstr("sizes that cut no block: 1\n")));
}

// The first rank speaks also for what another one has read.
TEST(RanksWarn, NanInThePartOfAnotherRank_IsNamed) {
  KERNELPATH_NEEDS_RANKS();
  const TemporaryFolder folder;
  const ModelShape shape;
  std::vector<PlainTensor> tensors = random_tensors(shape);
  PlainTensor& table = tensors.front();
  ASSERT_EQ(table.name, "model.embed_tokens.weight");
  table.values.back() = std::numeric_limits<float>::quiet_NaN();
  write_model(folder.path("model"), shape, tensors);
  const Outcome outcome = run_ranks(
      2, {folder.path("model"), "--tp", "2", "--prompt-tokens", "5", "-n", "2", "--ignore-eos"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(count_of(outcome.err, "model.embed_tokens.weight: the tensor holds NaN values"), 1)
      << outcome.err;
}

}  // namespace
}  // namespace kernelpath::testing
