#include "comm/world.h"
#include "ranks_launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

// llm-run as several ranks: mpirun starts them.
namespace kernelpath::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

struct Grid {
  std::string checkpoint;
  int tp = 1;
  int dcp = 1;
};

class Ranks : public ::testing::TestWithParam<Grid> {};

TEST_P(Ranks, GiveTheGoldenTokens_Once) {
  KERNELPATH_NEEDS_RANKS();
  const Grid& grid = GetParam();
  const std::string folder = checkpoint(grid.checkpoint);
  const Outcome outcome =
      run_ranks(grid.tp * grid.dcp, {folder, "--expect", folder + "/golden.json", "--tp",
                                     std::to_string(grid.tp), "--dcp", std::to_string(grid.dcp)});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(std::ranges::count(outcome.out, '\n'), 8) << outcome.out;
  EXPECT_EQ(count_of(outcome.err, "  weights "), 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr(std::to_string(grid.tp * grid.dcp) + " ranks"));
}

INSTANTIATE_TEST_SUITE_P(
    Run, Ranks,
    ::testing::Values(Grid{"llama-mha-untied-bias-f32", 2, 1}, Grid{"llama-fp16", 1, 2},
                      Grid{"gpt-oss", 2, 1}, Grid{"gpt-oss", 1, 2}, Grid{"gpt-oss", 2, 2},
                      Grid{"gpt-oss-mxfp4", 2, 1}, Grid{"deepseek-v3", 2, 1},
                      Grid{"deepseek-v3", 1, 2}, Grid{"deepseek-v32-dsa", 1, 2},
                      Grid{"qwen3-moe", 2, 1}, Grid{"llama-nvfp4-ct", 2, 1},
                      Grid{"llama-fp8-channel-ct", 2, 1}, Grid{"gemma2", 2, 1},
                      Grid{"llama4-text", 1, 2}, Grid{"kimi-linear", 2, 1}, Grid{"olmo2", 4, 1},
                      Grid{"phi3-longrope", 2, 1}, Grid{"cohere2", 2, 1}),
    [](const auto& test) {
      std::string name = test.param.checkpoint + "_tp" + std::to_string(test.param.tp) + "_dcp" +
                         std::to_string(test.param.dcp);
      std::ranges::replace(name, '-', '_');
      return name;
    });

// What else a run can do, on two ranks.
class Invariance : public ::testing::TestWithParam<std::vector<std::string>> {};

TEST_P(Invariance, TokensAreThoseOfTheGolden) {
  KERNELPATH_NEEDS_RANKS();
  const std::string folder = checkpoint(kLlama);
  std::vector<std::string> arguments = {folder, "--expect", folder + "/golden.json"};
  arguments.insert(arguments.end(), GetParam().begin(), GetParam().end());
  const Outcome outcome = run_ranks(2, arguments);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
}

INSTANTIATE_TEST_SUITE_P(
    Run, Invariance,
    ::testing::Values(std::vector<std::string>{"--tp", "2", "--threads", "2"},
                      std::vector<std::string>{"--tp", "2", "--backend", "vanilla"},
                      std::vector<std::string>{"--dcp", "2", "--backend", "vanilla"},
                      std::vector<std::string>{"--dcp", "2", "--page-size", "1"},
                      // Room for less than all prompts at a time: queued and preempted.
                      std::vector<std::string>{"--tp", "2", "--kv-memory", "160KiB"},
                      std::vector<std::string>{"--dcp", "2", "--kv-memory", "160KiB"},
                      std::vector<std::string>{"--tp", "2", "--speculative", "ngram"},
                      std::vector<std::string>{"--dcp", "2", "--speculative", "ngram"}));

TEST(RanksOutput, JsonLines_AreWrittenOnce) {
  KERNELPATH_NEEDS_RANKS();
  const Outcome outcome = run_ranks(2, {checkpoint(kLlama), "--tp", "2", "-p", "Hello", "-n", "3",
                                        "--ignore-eos", "--format", "jsonl"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(
      count_of(outcome.out, "\"event\":\"start\"") + count_of(outcome.out, "\"event\": \"start\""),
      1)
      << outcome.out;
  const Outcome alone = run({checkpoint(kLlama), "-p", "Hello", "-n", "3", "--ignore-eos"});
  const Outcome text =
      run_ranks(2, {checkpoint(kLlama), "--tp", "2", "-p", "Hello", "-n", "3", "--ignore-eos"});
  EXPECT_EQ(text.out, alone.out);
}

// Launchers give standard input to the first rank alone.
TEST(RanksInput, StandardInput_IsThatOfAllRanks) {
  KERNELPATH_NEEDS_RANKS();
  Call call = ranks_call(2, {checkpoint(kLlama), "--dcp", "2", "-p", "-", "-n", "4"});
  call.input = "Hello";
  const Outcome outcome = launch(call);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const Outcome alone = run({checkpoint(kLlama), "-p", "Hello", "-n", "4"});
  EXPECT_EQ(outcome.out, alone.out);
}

TEST(RanksRefused, AnotherNumberThanStarted_NamesBoth) {
  KERNELPATH_NEEDS_RANKS();
  const std::vector<std::string> prompt = {checkpoint(kLlama), "-p", "x"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), prompt.begin(), prompt.end());
    return more;
  };
  const Outcome none = run_ranks(2, prompt);
  EXPECT_EQ(none.exit_code, 2) << none.err;
  EXPECT_EQ(count_of(none.err, "takes 1 rank; started were 2"), 1) << none.err;
  const Outcome more = run_ranks(2, with({"--tp", "2", "--dcp", "2"}));
  EXPECT_EQ(more.exit_code, 2) << more.err;
  EXPECT_EQ(count_of(more.err, "takes 4 ranks; started were 2"), 1) << more.err;
  const Outcome alone = run(with({"--tp", "2"}));
  EXPECT_EQ(alone.exit_code, 2) << alone.err;
  EXPECT_THAT(alone.err,
              AllOf(HasSubstr("takes 2 ranks; started were 1"), HasSubstr("mpirun -np 2")));
}

TEST(RanksRefused, WithoutMpi_SaysWhatIsMissing) {
  if (!comm::mpi_library().empty()) GTEST_SKIP() << "this build has MPI";
  const Outcome outcome = run({checkpoint(kLlama), "-p", "x", "--tp", "2"});
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("this build has no MPI"), HasSubstr("libopenmpi-dev")));
}

TEST(RanksRefused, HeadsThatCannotBeDivided_NameTheSizes) {
  KERNELPATH_NEEDS_RANKS();
  const Outcome outcome = run_ranks(2, {checkpoint("llama-sharded"), "-p", "x", "--tp", "2"});
  EXPECT_EQ(outcome.exit_code, 4) << outcome.err;
  EXPECT_EQ(count_of(outcome.err, "3 KV heads and 2 ranks"), 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("--tp can be 1, 3, 6"));
  EXPECT_THAT(outcome.out, IsEmpty());
}

TEST(RanksRefused, BlocksOfQuantisedWeights_AreNotCut) {
  KERNELPATH_NEEDS_RANKS();
  const Outcome outcome = run_ranks(2, {checkpoint("qwen3-fp8-even"), "-p", "x", "--tp", "2"});
  EXPECT_EQ(outcome.exit_code, 4) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("self_attn.k_proj"), HasSubstr("blocks of 128")));
}

// Each rank is started with arguments of its own: one fails alone, and none waits for it.
TEST(RanksFail, OneRankAlone_EndsAllWithItsErrorAndCode) {
  KERNELPATH_NEEDS_RANKS();
  const TemporaryFolder folder;
  const std::string broken = copy_checkpoint(kLlama, folder);
  std::filesystem::remove(broken + "/model.safetensors");
  const auto mixed = [&](const std::string& first, const std::string& second) {
    Call call = ranks_call(1, {first, "-p", "x", "-n", "4", "--tp", "2"});
    add_ranks(call, 1, {second, "-p", "x", "-n", "4", "--tp", "2"});
    return launch(call);
  };
  const Outcome no_folder = mixed(checkpoint(kLlama), folder.path("nothing"));
  EXPECT_EQ(no_folder.exit_code, 3) << no_folder.err;
  EXPECT_EQ(count_of(no_folder.err, "rank 1: "), 1) << no_folder.err;
  const Outcome no_weights = mixed(checkpoint(kLlama), broken);
  EXPECT_EQ(no_weights.exit_code, 3) << no_weights.err;
  EXPECT_THAT(no_weights.err, HasSubstr("rank 1: "));
  EXPECT_THAT(no_weights.out, IsEmpty());
  const Outcome first = mixed(broken, checkpoint(kLlama));
  EXPECT_EQ(first.exit_code, 3) << first.err;
  EXPECT_THAT(first.err, AllOf(HasSubstr("error["), Not(HasSubstr("rank "))));
}

Outcome with_failing_rank(const std::string& how) {
  return launch(
      ranks_call(3, std::string(KERNELPATH_BUILD_DIR) + "/tests/failing_rank", {"--tp", "3", how}));
}

// A rank that throws cannot agree with the others any more: it ends them with its error.
TEST(RanksFail, RankThatThrows_EndsAllWithItsErrorAndCode) {
  KERNELPATH_NEEDS_RANKS();
  const Outcome memory = with_failing_rank("memory");
  EXPECT_EQ(memory.exit_code, 5) << memory.err;
  EXPECT_EQ(count_of(memory.err, "error[RESOURCE]: rank 2: out of memory"), 1) << memory.err;
  const Outcome bug = with_failing_rank("bug");
  EXPECT_EQ(bug.exit_code, 70) << bug.err;
  EXPECT_EQ(count_of(bug.err, "error[INTERNAL]: rank 2: a made-up bug"), 1) << bug.err;
}

// A rank that is gone says nothing; nobody waits for it.
TEST(RanksFail, RankThatIsGone_EndsAll) {
  KERNELPATH_NEEDS_RANKS();
  EXPECT_EQ(with_failing_rank("none").exit_code, 0);
  for (const std::string how : {"crash", "exit"}) {
    const Outcome outcome = with_failing_rank(how);
    EXPECT_NE(outcome.exit_code, 0) << how << outcome.err;
    EXPECT_NE(outcome.exit_code, -1) << how;  // it did not hang
  }
}

// The first rank alone writes files; the others must not wait for it.
TEST(RanksFail, FileThatCannotBeWritten_EndsAll) {
  KERNELPATH_NEEDS_RANKS();
  const Outcome outcome = run_ranks(2, {checkpoint(kLlama), "-p", "x", "-n", "4", "--tp", "2",
                                        "--dump-logits", "/nonexistent/logits"});
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_NE(outcome.exit_code, -1);  // it did not hang
  EXPECT_EQ(count_of(outcome.err, "llm-run: error["), 1) << outcome.err;
}

TEST(RanksWhy, Answer_IsWhatInspectSays) {
  for (const auto& ranks : {std::vector<std::string>{"--tp", "2"},
                            {"--dcp", "2"},
                            std::vector<std::string>{"--tp", "2", "--dcp", "3"}}) {
    std::vector<std::string> own = {checkpoint("gpt-oss"), "--why"};
    own.insert(own.end(), ranks.begin(), ranks.end());
    std::vector<std::string> other = own;
    other.insert(other.end(), {"--engine", "kernelpath", "--device", "cpu"});
    const Outcome run_why = run(own);
    const Outcome inspect_why = inspect(other);
    EXPECT_EQ(run_why.exit_code, 0) << run_why.err;
    EXPECT_EQ(run_why.out, inspect_why.out);
    EXPECT_THAT(run_why.out, HasSubstr("PARALLEL"));
  }
}

TEST(RanksDryRun, NoRankStarted_PlansEach) {
  const Outcome whole = run({checkpoint("gpt-oss"), "-p", "x", "--dry-run"});
  const Outcome part = run({checkpoint("gpt-oss"), "-p", "x", "--dry-run", "--tp", "2"});
  ASSERT_EQ(part.exit_code, 0) << part.err;
  EXPECT_THAT(part.out, HasSubstr("\nweights "));
  EXPECT_NE(part.out, whole.out);
  EXPECT_THAT(part.err, HasSubstr("2 ranks (tp 2, dcp 1)"));
  EXPECT_THAT(part.err + part.out, Not(HasSubstr("--dcp")));
  // More ranks of --dcp save cache, and no weights.
  const Outcome shard = run({checkpoint("gpt-oss"), "-p", "x", "--dry-run", "--dcp", "2"});
  const std::string whole_weights = whole.out.substr(0, whole.out.find("as they lie"));
  EXPECT_THAT(shard.out, StartsWith(whole_weights + "as they lie in memory; each rank of --dcp has "
                                                    "all of its --tp part\n"));
  EXPECT_THAT(shard.err, HasSubstr("--dcp divides the cache and no weights"));
}

}  // namespace
}  // namespace kernelpath::testing
