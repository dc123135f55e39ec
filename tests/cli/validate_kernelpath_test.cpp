// llm-validate of this project's own runtime: what it finds is what llm-run refuses.
#include "validate_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kernelpath::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string checkpoint(const std::string& name) {
  return std::string(KERNELPATH_TEST_DATA) + "/checkpoints/" + name;
}

struct Row {
  std::string model;
  std::vector<std::string> options;
  std::string rule;  // empty: llm-run runs it, and nothing is found
};

class OwnRules : public ::testing::TestWithParam<Row> {};

std::vector<std::string> with(std::vector<std::string> first,
                              const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

TEST_P(OwnRules, FindAnErrorExactlyWhereTheRunIsRefused) {
  const Row& row = GetParam();
  const Outcome judged = validate(
      with({checkpoint(row.model), "--engine", "kernelpath", "--device", "cpu"}, row.options));
  const Outcome planned = run_program(
      "llm-run", {.arguments = with({checkpoint(row.model), "--prompt-tokens", "1", "--dry-run"},
                                    row.options)});
  EXPECT_EQ(judged.exit_code, row.rule.empty() ? 0 : 1) << judged.out << judged.err;
  EXPECT_EQ(planned.exit_code == 0, row.rule.empty()) << planned.err;
  if (row.rule.empty()) {
    EXPECT_THAT(judged.out, Not(HasSubstr("error ")));
  } else {
    EXPECT_THAT(judged.out, HasSubstr("[" + row.rule + "]"));
  }
}

const std::string kPlain = "llama-gqa-tied-llama3rope";

INSTANTIATE_TEST_SUITE_P(
    Combinations, OwnRules,
    ::testing::Values(Row{kPlain, {}, ""}, Row{kPlain, {"--backend", "vanilla"}, ""},
                      Row{kPlain, {"--backend", "flashinfer"}, "KP-NO-KERNEL"},
                      Row{kPlain, {"--kv", "nvfp4"}, ""}, Row{kPlain, {"--kv", "fp8_e5m2"}, ""},
                      Row{kPlain, {"--kv", "q8_0"}, "KP-LAUNCH-VALUE"},
                      Row{kPlain, {"--page-size", "3"}, ""},
                      Row{kPlain, {"--set", "kernelpath.kv_layout=NHD"}, ""},
                      Row{kPlain, {"--speculative", "ngram"}, ""},
                      Row{kPlain, {"--speculative", "eagle3"}, "KP-NO-DRAFTS"},
                      Row{"kimi-linear", {}, ""},
                      Row{"kimi-linear", {"--speculative", "ngram"}, "KP-DRAFTS-AND-STATES"}));

TEST(OwnRules, EveryCheckpointOfTheRepository_IsFine) {
  for (const std::string name : {"deepseek-v32-dsa", "gemma2", "gpt-oss-mxfp4", "llama4-text"}) {
    const Outcome outcome =
        validate({checkpoint(name), "--engine", "kernelpath", "--device", "cpu"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
  }
}

TEST(OwnRules, OptionsThatTheRuntimeLacks_AreAllFound) {
  const Outcome outcome = validate({checkpoint(kPlain), "--engine", "kernelpath", "--device", "cpu",
                                    "--pp", "2", "--dtype", "bfloat16", "--quantization", "fp8"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("[KP-NO-SUCH-RANKS] --pp 2"), HasSubstr("at: --pp "),
                    HasSubstr("[KP-NO-ACTIVATION-TYPE] --dtype bfloat16"),
                    HasSubstr("at: --dtype "), HasSubstr("[KP-NO-QUANTISATION] --quantization fp8"),
                    HasSubstr("at: --quantization ")));
}

TEST(OwnRules, WithoutAModel_NothingIsSaidOfHeads) {
  const Outcome outcome =
      validate({"--engine", "kernelpath", "--device", "cpu", "--tp", "3", "--kv", "nvfp4"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
}

TEST(OwnRules, SettingThatTheRuntimeLacks_IsRefusedWithThoseThatItHas) {
  const Outcome value = validate({checkpoint(kPlain), "--engine", "kernelpath", "--device", "cpu",
                                  "--set", "kernelpath.kernel=sse"});
  EXPECT_EQ(value.exit_code, 2) << value.out;
  EXPECT_THAT(value.err, HasSubstr("auto, reference, avx2, avx512 or amx (sse)"));
  const Outcome name = validate({"--engine", "kernelpath", "--set", "kernelpath.layout=NHD"});
  EXPECT_EQ(name.exit_code, 2) << name.out;
  EXPECT_THAT(name.err, HasSubstr("it has fallback, kernel and kv_layout"));
}

TEST(OwnMatrix, ValuesWithoutAModel_AskTheCapabilityTable) {
  const std::vector<std::string> matrix = {"--matrix=backend,kv", "--engine", "kernelpath"};
  const Outcome cpu = validate(with(matrix, {"--device", "cpu"}));
  EXPECT_EQ(cpu.exit_code, 0) << cpu.err;
  EXPECT_THAT(cpu.out, ::testing::ContainsRegex("FLASHINFER +\\* +error +7 +KP-NO-KERNEL"));
  EXPECT_THAT(cpu.out, ::testing::ContainsRegex("auto.FUSED.VANILLA +\\* +ok +21"));
  // No backend of this library computes there.
  const Outcome rocm = validate(with(matrix, {"--device", "mi300a"}));
  EXPECT_THAT(rocm.out, HasSubstr("0 of 49 combinations are valid"));
}

TEST(OwnMatrix, FeaturesByTwo_AskTheCapabilityTable) {
  const Outcome cpu = validate({"--matrix", "--engine", "kernelpath", "--device", "cpu"});
  EXPECT_EQ(cpu.exit_code, 0) << cpu.err;
  EXPECT_THAT(cpu.out, AllOf(HasSubstr(" 0 multi-head latent attention"),
                             HasSubstr("fused RoPE x sliding "
                                       "window: no: FUSED has "
                                       "no fused RoPE"),
                             Not(HasSubstr("attention sinks x sliding window"))));
  const Outcome rocm = validate({"--matrix", "--engine", "kernelpath", "--device", "mi300a"});
  EXPECT_THAT(rocm.out, HasSubstr("attention sinks: no: FUSED has kernels for cpu only"));
  EXPECT_EQ(validate({"--matrix", "--engine", "vllm"}).exit_code, 4);
}

// Nobody asks a runtime without any kernel for the device, unless by its name.
TEST(OwnRules, QuestionToAllEngines_IsAnsweredWhereThereAreKernels) {
  EXPECT_THAT(validate({checkpoint(kPlain), "--device", "mi300a"}).out,
              Not(HasSubstr("kernelpath")));
  EXPECT_THAT(validate({checkpoint(kPlain), "--device", "cpu"}).out, HasSubstr("kernelpath"));
}

TEST(OwnRules, DeviceThatABackendHasNoKernelsFor_IsRefused) {
  const Outcome outcome =
      validate({"--engine", "kernelpath", "--backend", "vanilla", "--device", "mi300a"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("[KP-NO-KERNEL] VANILLA: VANILLA has kernels for cpu only"));
}

TEST(OwnRules, NameOfAnotherEngine_IsANote) {
  const Outcome outcome =
      validate({"--engine", "kernelpath", "--device", "cpu", "--backend", "trtllm"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("[KP-BACKEND-NAME] trtllm stands for FUSED"));
}

TEST(OwnRules, HeadsThatRanksCannotDivide_AreFound) {
  const Outcome outcome =
      validate({checkpoint(kPlain), "--engine", "kernelpath", "--device", "cpu", "--tp", "4"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("[KP-TP-HEADS] 6 heads cannot be divided among 4 ranks"));
}

TEST(OwnRules, ContextBeyondTheModels_IsAWarning) {
  const Outcome outcome = validate({checkpoint(kPlain), "--engine", "kernelpath", "--device", "cpu",
                                    "--max-model-len", "513", "--fail-on", "warn"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("[KP-CONTEXT-BEYOND]"));
}

TEST(OwnRules, UnknownArchitecture_IsTheEnginesOwnFinding) {
  const Outcome outcome =
      validate({std::string(KERNELPATH_TEST_DATA) + "/configs/transformers-default__gpt2",
                "--engine", "kernelpath", "--device", "cpu"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("KP-MODEL-UNKNOWN"));
}

}  // namespace
}  // namespace kernelpath::testing
