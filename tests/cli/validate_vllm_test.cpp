#include "validate_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

// llm-validate for vLLM, of both versions.

namespace kernelpath::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

std::vector<std::string> with_engine(const std::string& engine,
                                     std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"--engine", engine});
  return arguments;
}

std::vector<std::string> ids(const std::string& engine, std::vector<std::string> arguments,
                             int exit_code) {
  return finding_ids(validate_document(with_engine(engine, std::move(arguments)), exit_code));
}

TEST(ValidateVllm, WithoutAModel_GivesAVerdictBesideTheOtherEngines) {
  const Outcome outcome = validate({"--kv", "fp8", "--backend", "flashinfer"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("trtllm"));
  EXPECT_THAT(outcome.out, HasSubstr("vllm"));
  EXPECT_THAT(outcome.out, HasSubstr("FLASHINFER; KV fp8"));
}

TEST(ValidateVllm, RulesOfOneVersion_AreFoundInThatOneOnly) {
  const std::vector<std::string> arguments = {"--backend", "TRITON_ATTN", "--tp",
                                              "8",         "--dcp",       "2"};
  EXPECT_THAT(ids("vllm@0.25.1", arguments, 1), Contains("VLLM-DCP-NO-LSE"));
  const auto newer = ids("vllm@0.33.0", arguments, 1);
  EXPECT_THAT(newer, Contains("VLLM-BACKEND-DCP"));
  EXPECT_THAT(newer, Not(Contains("VLLM-DCP-NO-LSE")));
}

TEST(ValidateVllm, FiveViolatedRules_AreFiveFindings) {
  const auto found =
      ids("vllm",
          {"--backend", "FLASHINFER", "--kv", "int8_per_token_head", "--page-size", "8", "--sm",
           "75", "--dtype", "bfloat16", "--set", "vllm.attention_config.backend=FLASH_ATTN"},
          1);
  EXPECT_THAT(found,
              IsSupersetOf({"VLLM-BACKEND-TWICE", "VLLM-BACKEND-KV-TYPE", "VLLM-BACKEND-BLOCK-SIZE",
                            "VLLM-BACKEND-CAPABILITY", "VLLM-BF16-CAPABILITY"}));
}

TEST(ValidateVllm, OrderOfOptions_DoesNotChangeTheReport) {
  const auto forward =
      validate(with_engine("vllm", {"--backend", "FLEX_ATTENTION", "--kv", "fp8", "--tp", "3"}));
  const auto backward =
      validate(with_engine("vllm", {"--tp", "3", "--kv", "fp8", "--backend", "FLEX_ATTENTION"}));
  EXPECT_EQ(forward.out, backward.out);
  EXPECT_EQ(forward.exit_code, 1);
}

TEST(ValidateVllm, BackendThatTheSelectorRejects_IsOneErrorWithEveryReason) {
  const json::Value document =
      validate_document(with_engine("vllm", {config_folder("meta-llama__Meta-Llama-3.1-8B"),
                                             "--backend", "TURBOQUANT", "--page-size", "8"}),
                        1);
  std::vector<json::Value> errors;
  for (const json::Value& finding : document.find("findings")->items()) {
    if (text_of(finding, "level") == "error") errors.push_back(finding);
  }
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_THAT(text_of(errors[0], "message"), HasSubstr("kv_cache_dtype not supported"));
  EXPECT_THAT(text_of(errors[0], "message"), HasSubstr("block_size not supported"));
}

TEST(ValidateVllm, VariableThatNothingReads_IsNamedWithTheOptionInstead) {
  const json::Value document = validate_document(
      with_engine("vllm", {"--env", "VLLM_ATTENTION_BACKEND=TRITON_ATTN", "--sm", "86"}), 0);
  const auto found = findings_of(document, "VLLM-ENV-BACKEND-UNREAD");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(text_of(found[0], "level"), "warn");
  EXPECT_THAT(text_of(found[0], "message"), HasSubstr("VLLM_ATTENTION_BACKEND"));
  EXPECT_THAT(text_of(found[0], "message"), HasSubstr("attention_backend"));
}

TEST(ValidateVllm, ServeCommand_IsJudgedByItsOptions) {
  const json::Value document = validate_document(
      {"--command",
       "vllm serve org/model -tp 8 --decode-context-parallel-size 3 --attention-config.backend "
       "FLASHINFER --kv_cache_dtype fp8 --port 80"},
      1);
  const auto found = findings_of(document, "VLLM-DCP-TP");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(text_of(found[0], "option"), "--decode-context-parallel-size");
  EXPECT_THAT(finding_ids(document), Contains("COMMAND-UNUSED"));
}

TEST(ValidateVllm, CommandOfTwoVersions_IsReadByTheOptionsOfEach) {
  const json::Value document = validate_document(
      {"--engine", "vllm@0.25.1,vllm@0.33.0", "--command", "vllm serve m --disable-prefix-caching"},
      1);
  const auto unknown = findings_of(document, "COMMAND-UNKNOWN");
  ASSERT_EQ(unknown.size(), 1U);
  EXPECT_THAT(text_of(unknown[0], "message"), HasSubstr("0.33.0 has it"));
}

TEST(ValidateVllm, ModuleCommand_IsTheSameServer) {
  EXPECT_THAT(
      finding_ids(validate_document({"--command",
                                     "python3 -m vllm.entrypoints.openai.api_server --model m "
                                     "--block-size 8"},
                                    1)),
      Contains("VLLM-BLOCK-SIZE-NONE"));
}

TEST(ValidateVllm, ConfigFile_PointsIntoTheFile) {
  const TemporaryFolder folder;
  const std::string file = folder.write(
      "serve.yaml", "tensor-parallel-size: 2\nattention-config:\n  backend: FLASH_ATTEN\n");
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--engine", "vllm", "--yaml", file},
        std::vector<std::string>{"--command", "vllm serve m --config " + file}}) {
    const auto found = findings_of(validate_document(arguments, 1), "VLLM-ARG-CHOICE");
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(text_of(found[0], "file"), file);
    EXPECT_EQ(found[0].find("line")->as_integer(), 3);
  }
}

TEST(ValidateVllm, FalseInAConfigFile_ThatThisVersionDrops_IsAFinding) {
  const TemporaryFolder folder;
  const std::string file = folder.write("serve.yaml", "enable-prefix-caching: false\n");
  EXPECT_THAT(ids("vllm@0.25.1", {"--yaml", file}, 0), Contains("COMMAND-DROPPED"));
  EXPECT_THAT(ids("vllm@0.33.0", {"--yaml", file}, 0), Not(Contains("COMMAND-DROPPED")));
}

TEST(ValidateVllm, RulesAndTheirExplanations_AreListed) {
  const Outcome list = validate({"--list", "rules", "--engine", "vllm"});
  EXPECT_EQ(list.exit_code, 0);
  EXPECT_THAT(list.out, HasSubstr("VLLM-BACKEND-KV-TYPE"));
  const Outcome explained = validate({"--explain", "VLLM-DCP-NO-LSE"});
  EXPECT_EQ(explained.exit_code, 0);
  EXPECT_THAT(explained.out, HasSubstr("rule of vllm 0.25.1: error, run"));
}

TEST(ValidateVllm, Matrix_EnumeratesItsBackends) {
  const Outcome outcome =
      validate({"--engine", "vllm", "--matrix=backend=FLASH_ATTN|FLEX_ATTENTION,kv=auto|fp8"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("VLLM-BACKEND-KV-TYPE"));
}

TEST(ValidateVllm, Suggestion_RemovesTheError) {
  const Outcome outcome =
      validate({"--engine", "vllm", "--backend", "FLEX_ATTENTION", "--kv", "fp8", "--suggest"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("change: leave out --kv\n"));
}

}  // namespace
}  // namespace kernelpath::testing
