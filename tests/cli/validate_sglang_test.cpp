#include "validate_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

// llm-validate for SGLang.

namespace kernelpath::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

std::vector<std::string> of_sglang(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"--engine", "sglang"});
  return arguments;
}

std::vector<std::string> ids(std::vector<std::string> arguments, int exit_code) {
  return finding_ids(validate_document(of_sglang(std::move(arguments)), exit_code));
}

std::vector<std::string> ids_of_command(const std::string& command, int exit_code) {
  return finding_ids(validate_document({"--command", command}, exit_code));
}

TEST(ValidateSglang, WithoutAModel_IsJudgedBesideTheOtherEngines) {
  const Outcome outcome = validate({"--kv", "fp8", "--backend", "flashinfer"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("FLASHINFER; KV fp8_e4m3"));
}

TEST(ValidateSglang, ManyViolatedRules_AreAllFound) {
  EXPECT_THAT(ids({"--set", "sglang.enable_hisparse=true", "--set",
                   "sglang.speculative_algorithm=NGRAM", "--set", "sglang.attn_dp_size=2", "--tp",
                   "2", "--set", "sglang.enable_priority_scheduling=true", "--set",
                   "sglang.schedule_policy=lpm", "--set", "sglang.max_loras_per_batch=0"},
                  1),
              IsSupersetOf({"SGL-HISPARSE-RADIX", "SGL-LORA-BATCH", "SGL-PRIORITY-POLICY",
                            "SGL-SPEC-NGRAM-DP"}));
}

TEST(ValidateSglang, OrderOfOptions_DoesNotChangeTheReport) {
  const auto forward =
      validate(of_sglang({"--backend", "trtllm_mla", "--kv", "fp8", "--sm", "90", "--dcp", "3"}));
  const auto backward =
      validate(of_sglang({"--dcp", "3", "--sm", "90", "--kv", "fp8", "--backend", "trtllm_mla"}));
  EXPECT_EQ(forward.out, backward.out);
  EXPECT_EQ(forward.exit_code, 1);
}

TEST(ValidateSglang, DeviceThatABackendDoesNotServe_IsAnErrorWithAndWithoutModel) {
  const std::vector<std::string> alone = {"--backend", "fa3", "--sm", "120"};
  EXPECT_THAT(ids(alone, 1), Contains("SGL-BUILD-FA3"));
  std::vector<std::string> with_model = alone;
  with_model.push_back(config_folder("meta-llama__Meta-Llama-3.1-8B"));
  const auto found = findings_of(validate_document(of_sglang(with_model), 1), "SGL-BUILD-FA3");
  EXPECT_EQ(found.size(), 1U);  // the resolution's refusal and the rule are one finding
}

TEST(ValidateSglang, LaunchCommand_IsJudgedByItsOptions) {
  const json::Value document =
      validate_document({"--command",
                         "python -m sglang.launch_server --model-path org/model --tp 8 "
                         "--attention-backend fa3 --max-loras-per-batch 0 --host 0.0.0.0"},
                        1);
  const auto found = findings_of(document, "SGL-LORA-BATCH");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(text_of(found[0], "option"), "--max-loras-per-batch");
}

TEST(ValidateSglang, ServeCommand_IsTheSameServer) {
  for (const char* command :
       {"sglang serve org/model --watermark-config x",
        "sglang serve --model org/model "
        "--watermark-config x",
        "python3 -m sglang.launch_server --model-path org/model --watermark-config x"}) {
    EXPECT_THAT(ids_of_command(command, 1), Contains("SGL-WATERMARK-DISABLED")) << command;
  }
}

TEST(ValidateSglang, UnknownOptionsAndValues_AreNamedWithWhatIsMeant) {
  const json::Value document = validate_document(
      {"--command",
       "python -m sglang.launch_server --model-path m --attention-backnd fa3 --kv-cache-dtype fp9"},
      1);
  const auto unknown = findings_of(document, "COMMAND-UNKNOWN");
  ASSERT_EQ(unknown.size(), 2U);  // the name, and the word that it leaves without an option
  EXPECT_THAT(text_of(unknown[0], "message"), HasSubstr("--attention-backend"));
  const auto value = findings_of(document, "COMMAND-VALUE");
  ASSERT_EQ(value.size(), 1U);
  EXPECT_THAT(text_of(value[0], "message"), HasSubstr("fp8_e4m3"));
}

TEST(ValidateSglang, ConfigFile_PointsIntoTheFile) {
  const TemporaryFolder folder;
  const std::string file =
      folder.write("serve.yaml", "model-path: org/model\ntp: 2\nmax-loras-per-batch: 0\n");
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--engine", "sglang", "--yaml", file},
        std::vector<std::string>{"--command", "python -m sglang.launch_server --config " + file}}) {
    const auto found = findings_of(validate_document(arguments, 1), "SGL-LORA-BATCH");
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(text_of(found[0], "file"), file);
    EXPECT_EQ(found[0].find("line")->as_integer(), 3);
  }
}

TEST(ValidateSglang, Variables_DecideRules) {
  const std::vector<std::string> arguments = {config_folder("meta-llama__Meta-Llama-3.1-8B"),
                                              "--set", "sglang.context_length=500000"};
  EXPECT_THAT(ids(arguments, 1), Contains("SGL-MODEL-LONG-CONTEXT"));
  std::vector<std::string> allowed = arguments;
  allowed.insert(allowed.end(), {"--env", "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1"});
  const auto found = ids(allowed, 0);
  EXPECT_THAT(found, Not(Contains("SGL-MODEL-LONG-CONTEXT")));
  EXPECT_THAT(found, Contains("SGL-LONGER-CONTEXT-ALLOWED"));
}

TEST(ValidateSglang, RulesAndTheirExplanations_AreListed) {
  const Outcome list = validate({"--list", "rules", "--engine", "sglang"});
  EXPECT_EQ(list.exit_code, 0);
  EXPECT_THAT(list.out, HasSubstr("SGL-HISPARSE-RADIX"));
  const Outcome explained = validate({"--explain", "SGL-HISPARSE-RADIX"});
  EXPECT_EQ(explained.exit_code, 0);
  EXPECT_THAT(explained.out, HasSubstr("rule of sglang 0.5.23: error"));
}

TEST(ValidateSglang, Matrix_EnumeratesItsBackends) {
  const Outcome outcome =
      validate(of_sglang({"--matrix=backend=fa3|trtllm_mla,kv=auto|fp8", "--sm", "90"}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("SGL-"));
}

TEST(ValidateSglang, Suggestion_RemovesTheError) {
  const Outcome outcome =
      validate(of_sglang({"--set", "sglang.enable_hisparse=true", "--suggest"}));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("change: "));
}

TEST(ValidateSglang, ReplacedValue_IsAFinding) {
  const auto found =
      ids({config_folder("deepseek-ai__DeepSeek-V3"), "--set", "sglang.attention_backend=flashmla",
           "--page-size", "1", "--tp", "8", "--device", "h200"},
          0);
  EXPECT_THAT(found, Contains(HasSubstr("SGL-PAGE")));
}

// What no check of the engine says, and users met.
TEST(ValidateSglang, FailuresAfterTheStart_AreFound) {
  EXPECT_THAT(ids({config_folder("deepseek-ai__DeepSeek-V2-Lite"), "--backend", "flashmla",
                   "--page-size", "64", "--tp", "4", "--dcp", "2", "--sm", "90"},
                  1),
              Contains("SGL-RUN-FLASHMLA-DCP"));
  EXPECT_THAT(ids({config_folder("deepseek-ai__DeepSeek-V3"), "--tp", "8", "--sm", "100"}, 0),
              Contains("SGL-RUN-PREFIX-LSE"));
  EXPECT_THAT(ids({"--kv", "fp8", "--set", "sglang.quantization_param_path=kv_scales.json"}, 0),
              Contains("SGL-KV-SCALES-FILE"));
}

}  // namespace
}  // namespace kernelpath::testing
