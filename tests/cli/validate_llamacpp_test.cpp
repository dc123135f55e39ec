#include "../unit/checkpoint/build_gguf.h"
#include "validate_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

// llm-validate for llama.cpp and DeepInfer.

namespace kernelpath::testing {
namespace {

using checkpoint::llama_gguf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

std::vector<std::string> ids(std::vector<std::string> arguments, int exit_code) {
  arguments.insert(arguments.begin(), {"--engine", "llamacpp"});
  return finding_ids(validate_document(std::move(arguments), exit_code));
}

std::vector<std::string> ids_of_command(const std::string& command, int exit_code) {
  return finding_ids(validate_document({"--command", command}, exit_code));
}

std::vector<std::string> deepinfer_ids(std::vector<std::string> arguments, int exit_code) {
  arguments.insert(arguments.begin(), {"--engine", "deepinfer"});
  return finding_ids(validate_document(std::move(arguments), exit_code));
}

TEST(ValidateLlamacpp, QuestionToAllEngines_HasNoMeaningHereAndFailsNothing) {
  const json::Value document = validate_document({"--kv", "fp8", "--backend", "flashinfer"}, 0);
  EXPECT_THAT(finding_ids(document),
              IsSupersetOf({"LC-KV-NO-MEANING", "LC-NO-BACKENDS", "OPTION-UNREAD"}));
}

TEST(ValidateLlamacpp, CacheTypeThatItLacks_IsRefusedWhereItIsAskedByName) {
  EXPECT_THAT(ids({"--kv", "fp8"}, 1), Contains("LC-KV-TYPE"));
}

TEST(ValidateLlamacpp, ManyViolatedRules_AreAllFound) {
  EXPECT_THAT(
      ids({"--set", "llamacpp.cache_type_v=q8_0", "--set", "llamacpp.flash_attn=off", "--set",
           "llamacpp.split_mode=row", "--pp", "2", "--set", "llamacpp.n_parallel=300"},
          1),
      IsSupersetOf({"LC-FLASH-V", "LC-SPLIT-ROW", "LC-SEQUENCES"}));
}

TEST(ValidateLlamacpp, RefusalOfTheResolution_IsSaidOnceByItsRule) {
  const std::string model = config_folder("meta-llama__Meta-Llama-3.1-8B");
  const json::Value document = validate_document(
      {model, "--engine", "llamacpp", "--set", "llamacpp.cache_type_v=q8_0", "--backend", "off"},
      1);
  EXPECT_EQ(findings_of(document, "LC-FLASH-V").size(), 1U);
  EXPECT_THAT(finding_ids(document), Not(Contains(HasSubstr("LCPP-"))));
}

TEST(ValidateLlamacpp, GgufFileOfTheCommand_IsTheModel) {
  const TemporaryFolder folder;
  const std::string file = folder.write("m.gguf", llama_gguf(48).bytes());
  EXPECT_THAT(ids_of_command("llama-server -m " + file + " -ctk q8_0", 1),
              Contains("LC-KV-K-BLOCK"));
  EXPECT_THAT(ids_of_command("llama-server -m " + file + " -c 8192 -np 1", 0),
              Contains("LC-CONTEXT-OVER-TRAINED"));
}

TEST(ValidateLlamacpp, Command_IsReadAsTheEngineReadsIt) {
  const auto found = ids_of_command(
      "LLAMA_ARG_FLASH_ATTN=off llama-server -m org.gguf -c 32k -ctv q4_0 --foo-bar 3", 1);
  EXPECT_THAT(found, IsSupersetOf({"LC-FLASH-V", "COMMAND-DROPPED", "COMMAND-UNKNOWN"}));
  EXPECT_THAT(ids_of_command("llama-cli -m org.gguf -c 4096 -fa on -ctv q4_0", 0),
              Not(Contains("LC-FLASH-V")));
}

TEST(ValidateLlamacpp, VariablesOfOptions_AreArgumentsBelowThem) {
  const json::Value document =
      validate_document({"--engine", "llamacpp", "--env", "LLAMA_ARG_CACHE_TYPE_V=q8_0", "--env",
                         "LLAMA_ARG_FLASH_ATTN=off"},
                        1);
  const auto found = findings_of(document, "LC-FLASH-V");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(text_of(found[0], "option"), "LLAMA_ARG_FLASH_ATTN");
  EXPECT_THAT(ids({"--env", "LLAMA_ARG_CACHE_TYPE_V=q8_0", "--env", "LLAMA_ARG_FLASH_ATTN=off",
                   "--set", "llamacpp.flash_attn=on"},
                  0),
              Not(Contains("LC-FLASH-V")));
}

TEST(ValidateLlamacpp, RulesMatrixAndSuggestions_AreThere) {
  EXPECT_THAT(validate({"--list", "rules", "--engine", "llamacpp"}).out, HasSubstr("LC-FLASH-V"));
  EXPECT_THAT(validate({"--explain", "LC-FLASH-V"}).out,
              HasSubstr("rule of llamacpp 0c1e5709: error"));
  EXPECT_THAT(validate({"--matrix=kv,backend", "--engine", "llamacpp"}).out,
              HasSubstr("LC-FLASH-V"));
  EXPECT_THAT(
      validate({"--engine", "llamacpp", "--kv", "q4_0", "--backend", "off", "--suggest"}).out,
      HasSubstr("change: "));
}

TEST(ValidateDeepinfer, ArgumentsAndVariables_AreJudgedTogether) {
  const auto found =
      deepinfer_ids({"--page-size", "64", "--env", "DEEPINFER_USE_NEXTN_DECODE=x"}, 1);
  EXPECT_THAT(found, IsSupersetOf({"DI-ENV-VALUE", "DI-TOKENS-PER-BLOCK-NOT-128"}));
  EXPECT_THAT(deepinfer_ids({"--max-model-len", "8192"}, 0), IsEmpty());
}

TEST(ValidateDeepinfer, ArgumentThatItsTableLacks_IsAWarning) {
  EXPECT_THAT(deepinfer_ids({"--set", "deepinfer.some_argument=1"}, 0),
              Contains("DI-ARGUMENT-NOT-IN-TABLE"));
}

TEST(ValidateDeepinfer, ItsOneModel_IsTheOnlyOneItSpeaksOf) {
  const std::string llama = config_folder("meta-llama__Meta-Llama-3.1-8B");
  EXPECT_THAT(validate({llama}).out, Not(HasSubstr("deepinfer")));
  EXPECT_THAT(deepinfer_ids({llama}, 1), Contains("DI-ARCHITECTURE-NOT-REGISTERED"));
}

TEST(ValidateDeepinfer, CommandLine_IsRefused) {
  const Outcome outcome = validate({"--command", "deepinfer --model m"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--set"));
}

}  // namespace
}  // namespace kernelpath::testing
