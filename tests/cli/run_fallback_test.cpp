// --fallback: what runs where the named backend cannot.
#include "run_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kernelpath::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::vector<std::string> kAsked = {"-p", "Hello", "-n", "8", "--ignore-eos"};

Outcome run_with(const std::vector<std::string>& options) {
  std::vector<std::string> arguments = {checkpoint(kLlama)};
  arguments.insert(arguments.end(), kAsked.begin(), kAsked.end());
  arguments.insert(arguments.end(), options.begin(), options.end());
  return run(arguments);
}

TEST(RunFallback, Error_IsTheDefault) {
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{}, {"--fallback", "error"}}) {
    std::vector<std::string> all = options;
    all.insert(all.end(), {"--backend", "flashinfer"});
    const Outcome outcome = run_with(all);
    EXPECT_EQ(outcome.exit_code, 4);
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(RunFallback, Warn_RunsTheFirstThatCan_AndSaysSo) {
  const Outcome plain = run_with({});
  const Outcome outcome = run_with({"--backend", "flashinfer", "--fallback", "warn"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, plain.out);
  EXPECT_THAT(outcome.err, HasSubstr("warn: FUSED runs in place of flashinfer: this build has no "
                                     "FlashInfer kernels"));
}

TEST(RunFallback, Warn_ChangesNothingWhereTheNamedOneCan) {
  const Outcome outcome = run_with({"--backend", "vanilla", "--fallback", "warn"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("VANILLA"), ::testing::Not(HasSubstr("in place of"))));
}

TEST(RunFallback, Why_IsWhatInspectSaysOfTheSetting) {
  const Outcome own =
      run({checkpoint(kLlama), "--backend", "flashinfer", "--fallback", "warn", "--why"});
  EXPECT_EQ(own.exit_code, 0) << own.err;
  EXPECT_THAT(own.out, AllOf(HasSubstr("KP-FALLBACK"), HasSubstr("KP-BUILD")));
  const Outcome inspected =
      inspect({checkpoint(kLlama), "--engine", "kernelpath", "--device", "cpu", "--backend",
               "flashinfer", "--set", "kernelpath.fallback=warn", "--why"});
  EXPECT_EQ(own.out, inspected.out);
}

}  // namespace
}  // namespace kernelpath::testing
