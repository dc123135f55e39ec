// The progress line of a batch: on a terminal alone, and taken back at the end.
#include "run_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace kernelpath::testing {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

// llm-run with a terminal as standard error, and standard output in a file. What the terminal got,
// and the exit code.
std::pair<std::string, int> run_with_progress(std::vector<std::string> arguments,
                                              const std::string& terminal) {
  return run_on_terminal("llm-run", std::move(arguments), {"TERM=" + terminal});
}

class RunProgress : public ::testing::Test {
 protected:
  // The arguments of a batch of three, answered into a file.
  [[nodiscard]] std::vector<std::string> batch(std::vector<std::string> more = {}) const {
    std::vector<std::string> out = {checkpoint(kLlama),  "--prompts", prompts_, "-o",
                                    "text:" + answers(), "-n",        "3",      "--ignore-eos"};
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
  [[nodiscard]] std::string answers() const { return folder_.path("answers"); }

  TemporaryFolder folder_;
  std::string prompts_ = folder_.write("prompts.jsonl",
                                       "{\"prompt\": \"Hello\"}\n"
                                       "{\"prompt\": \"Hello you\", \"max_tokens\": 9}\n"
                                       "{\"prompt\": \"Hello world\", \"max_tokens\": 18}\n");
};

TEST_F(RunProgress, Batch_IsCountedOnATerminal_AndTheLineTakenBack) {
  const auto [text, code] = run_with_progress(batch(), "xterm");
  EXPECT_EQ(code, 0) << text;
  EXPECT_THAT(text, AllOf(HasSubstr("0/3 requests  0 tokens"), HasSubstr("1/3 requests"),
                          HasSubstr("2/3 requests"), HasSubstr("tokens/s"), EndsWith("\r\x1b[K")));
  EXPECT_THAT(read_file(answers()), AllOf(HasSubstr("=== 1\n"), HasSubstr("=== 3\n")));
}

TEST_F(RunProgress, UnwantedOrNotToBeTakenBack_IsNotShown) {
  for (const std::string option : {"--no-progress", "--quiet", "--log-json"}) {
    EXPECT_THAT(run_with_progress(batch({option}), "xterm").first, Not(HasSubstr("requests")));
  }
  EXPECT_THAT(run_with_progress(batch(), "dumb").first, Not(HasSubstr("requests")));
}

TEST_F(RunProgress, Pipe_HasNone) {
  const Outcome outcome = run(batch());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(Not(HasSubstr("requests")), Not(HasSubstr("\x1b"))));
}

TEST_F(RunProgress, OneRequest_HasNone) {
  const auto [text, code] =
      run_with_progress({checkpoint(kLlama), "-p", "Hello", "-n", "3", "--ignore-eos"}, "xterm");
  EXPECT_EQ(code, 0);
  EXPECT_THAT(text, Not(HasSubstr("requests")));
}

TEST_F(RunProgress, AnswersOnTheSameTerminal_StandOnLinesOfTheirOwn) {
  const auto [text, code] = run_with_progress(
      {checkpoint(kLlama), "--prompts", prompts_, "-n", "3", "--ignore-eos"}, "xterm");
  EXPECT_EQ(code, 0) << text;
  for (const std::string id : {"1", "2", "3"}) {
    EXPECT_THAT(text, HasSubstr("\r\x1b[K=== " + id + "\r\n"));
  }
}

}  // namespace
}  // namespace kernelpath::testing
