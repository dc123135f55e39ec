#include "validate_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

// What llm-validate finds in models and combinations, and where.

namespace kernelpath::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ValidateCombination, WithoutAModel_GivesAVerdictPerEngine) {
  const Outcome outcome = validate({"--kv", "fp8", "--backend", "flashinfer"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("trtllm    ok      FLASHINFER; KV fp8\n"));
  EXPECT_THAT(outcome.out, HasSubstr("exit 0\n"));
}

TEST(ValidateCombination, MissingPackage_IsAFallbackAtTheOption) {
  const json::Value document = validate_document(
      {"--engine", "trtllm", "--backend", "flashinfer", "--lacks", "flashinfer"}, 0);
  const auto found = findings_of(document, "BACKEND-FALLBACK");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(text_of(found[0], "level"), "warn");
  EXPECT_EQ(text_of(found[0], "option"), "--backend");
  EXPECT_EQ(text_of(found[0], "at"), "option:/attn_backend");
}

TEST(ValidateCombination, FiveViolatedRules_AreFiveFindingsWithPlacesAndRemedies) {
  const json::Value document = validate_document(
      {"--engine", "trtllm", "--backend", "vanilla", "--kv", "nvfp4", "--cp", "2", "--set",
       "trtllm.enable_mla_skip_correction=true", "--set", "trtllm.enable_chunked_prefill=true",
       "--set", "trtllm.kv_cache_config.free_gpu_memory_fraction=1.5", "--set",
       "trtllm.mla_skip_correction_threshold=99"},
      1);
  std::set<std::string> errors;
  std::set<std::string> places;
  for (const json::Value& finding : document.find("findings")->items()) {
    if (text_of(finding, "level") != "error") continue;
    errors.insert(text_of(finding, "id"));
    places.insert(text_of(finding, "option"));
    EXPECT_NE(text_of(finding, "fix"), "") << text_of(finding, "id");
  }
  for (const char* id :
       {"SKIPCORR-BACKEND", "SKIPCORR-RANGE", "KV-FREE-FRACTION", "CP-TYPE", "KV-NVFP4-BACKEND"}) {
    EXPECT_THAT(errors, Contains(id));
  }
  EXPECT_EQ(errors.size(), 5U);
  // Two of them are both about --backend.
  EXPECT_EQ(places.size(), 4U);
}

TEST(ValidateCombination, OrderOfOptions_DoesNotChangeTheReport) {
  const std::vector<std::string> forward = {"--backend", "vanilla", "--kv", "nvfp4", "--tp", "3"};
  const std::vector<std::string> backward = {"--tp", "3", "--kv", "nvfp4", "--backend", "vanilla"};
  EXPECT_EQ(validate(forward).out, validate(backward).out);
}

TEST(ValidateModel, FieldOfConfigJson_IsNamedWithLineAndColumn) {
  const TemporaryFolder folder;
  const std::string path = folder.write("config.json",
                                        "{\n \"architectures\": [\"NoSuchForCausalLM\"],\n"
                                        " \"model_type\": \"llama\",\n \"hidden_size\": 64,\n"
                                        " \"num_attention_heads\": 4,\n"
                                        " \"num_hidden_layers\": 2,\n"
                                        " \"intermediate_size\": 128,\n \"vocab_size\": 100\n}\n");
  const json::Value document = validate_document({path, "--engine", "trtllm"}, 1);
  const auto found = findings_of(document, "UNKNOWN-ARCH");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(text_of(found[0], "at"), "config:/architectures");
  EXPECT_EQ(text_of(found[0], "file"), path);
  EXPECT_EQ(found[0].find("line")->as_integer(), 2);
  EXPECT_EQ(found[0].find("column")->as_integer(), 19);
  // The engine's own refusal says the same and is not said twice.
  EXPECT_EQ(finding_ids(document), std::vector<std::string>{"UNKNOWN-ARCH"});
}

TEST(ValidateModel, RanksThatDoNotDivideTheHeads_AreAnError) {
  const std::string model = config_folder("meta-llama__Meta-Llama-3.1-8B");
  const json::Value document = validate_document({model, "--tp", "3"}, 1);
  EXPECT_THAT(finding_ids(document), Contains("HEADS-NOT-DIVISIBLE"));
  EXPECT_THAT(finding_ids(document), Not(Contains("TRT-HEADS-INDIVISIBLE")));
  EXPECT_EQ(validate({model, "--tp", "4"}).exit_code, 0);
}

TEST(ValidateModel, DeviceWithoutCuda_IsTheEnginesOwnRefusal) {
  const json::Value document =
      validate_document({config_folder("meta-llama__Meta-Llama-3.1-8B"), "--device", "cpu"}, 1);
  const auto found = findings_of(document, "TRT-DEVICE");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(text_of(found[0], "level"), "error");
  EXPECT_NE(text_of(*found[0].find("source"), "file"), "");
}

TEST(ValidateModel, WeightsThatDoNotFit_AreAnErrorWithTheRanksThatWouldDo) {
  const std::string model = config_folder("meta-llama__Meta-Llama-3.1-70B");
  const std::string engines = "trtllm,vllm,sglang";
  const json::Value document = validate_document({model, "--engine", engines, "--suggest"}, 1);
  const auto found = findings_of(document, "MEM-WEIGHTS");
  ASSERT_EQ(found.size(), 1U);
  const std::string change = text_of(found[0], "suggestion");
  ASSERT_TRUE(change.starts_with("--tp ")) << change;
  const json::Value changed =
      validate_document({model, "--engine", engines, "--tp", change.substr(5)}, 0);
  EXPECT_TRUE(findings_of(changed, "MEM-WEIGHTS").empty());
}

TEST(ValidateModel, SequenceThatDoesNotFit_PointsAtTheOptionThatLimitsIt) {
  const json::Value document =
      validate_document({config_folder("meta-llama__Llama-4-Scout-17B-16E-Instruct"), "--engine",
                         "trtllm,vllm,sglang", "--tp", "8", "--device", "b200"},
                        1);
  const auto found = findings_of(document, "MEM-KV");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(text_of(found[0], "at"), "option:/max_model_len");
  EXPECT_EQ(text_of(found[0], "option"), "--max-model-len");
}

TEST(ValidateModel, LowerCaseBackend_LosesTheChunksOfLlama4) {
  const std::string model = config_folder("meta-llama__Llama-4-Scout-17B-16E-Instruct");
  const std::vector<std::string> call = {model,  "--tp", "8", "--device", "b200", "--max-model-len",
                                         "65536"};
  std::vector<std::string> lower = call;
  lower.insert(lower.end(), {"--set", "trtllm.attn_backend=trtllm"});
  EXPECT_THAT(finding_ids(validate_document(lower, 1)), Contains("CASE-CHUNK-LOST"));
  EXPECT_THAT(finding_ids(validate_document(call, 0)), Not(Contains("CASE-CHUNK-LOST")));
}

TEST(ValidateModel, CacheTypeWithoutScales_IsAWarning) {
  const std::string model = config_folder("meta-llama__Meta-Llama-3.1-8B");
  EXPECT_THAT(finding_ids(validate_document({model, "--kv", "fp8"}, 0)),
              Contains("KV-SCALES-MISSING"));
  EXPECT_THAT(finding_ids(validate_document({model}, 0)), Not(Contains("KV-SCALES-MISSING")));
}

TEST(ValidateModel, OptionThatNothingReads_IsAWarning) {
  const json::Value document = validate_document({"--dp", "2", "--env", "NO_SUCH=1"}, 0);
  const auto found = findings_of(document, "OPTION-UNREAD");
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(text_of(found[0], "level"), "warn");
}

TEST(ValidateModel, DraftOfAnotherBackend_IsResolvedToo) {
  const json::Value document =
      validate_document({config_folder("meta-llama__Meta-Llama-3.1-8B"), "--speculative",
                         "eagle3:" + config_folder("SpecForge__llama3-8B-eagle3")},
                        0);
  const json::Value& engine = document.find("inputs")->items()[0].find("engines")->items()[0];
  EXPECT_THAT(text_of(engine, "summary"), HasSubstr("draft on "));
}

TEST(ValidateModels, Several_AreOneReport) {
  const json::Value document =
      validate_document({config_folder("meta-llama__Meta-Llama-3.1-8B"),
                         config_folder("meta-llama__Llama-3.2-1B-Instruct"), "--tp", "3"},
                        1);
  EXPECT_EQ(document.find("inputs")->items().size(), 2U);
  EXPECT_EQ(findings_of(document, "HEADS-NOT-DIVISIBLE").size(), 2U);
}

TEST(ValidateVariable, FmhaLibraries_AreJudgedWithoutAModel) {
  const auto ids = [](const std::string& value, int code) {
    return finding_ids(
        validate_document({"--engine", "trtllm", "--env", "TLLM_FMHA_LIBS=" + value}, code));
  };
  EXPECT_THAT(ids("fallback,-prims_ts", 1), Contains("FMHA-ENV-MIXED"));
  EXPECT_THAT(ids("fallback, prims_ts", 0), Not(Contains("FMHA-ENV-MIXED")));
  EXPECT_THAT(ids("-fallback,+", 1), Contains("FMHA-ENV-EMPTY"));
  EXPECT_THAT(ids("- fallback,+ prims_ts", 0), Not(Contains("FMHA-ENV-EMPTY")));
  EXPECT_THAT(ids("Fallback", 1), Contains("FMHA-ENV-UNKNOWN"));
  EXPECT_THAT(ids("fallback", 0), Not(Contains("FMHA-ENV-UNKNOWN")));
}

TEST(ValidateVariable, FmhaLibraries_DependOnTheBackendAndTheModel) {
  const std::vector<std::string> libraries = {"--engine", "trtllm", "--env",
                                              "TLLM_FMHA_LIBS=cute_dsl_mla"};
  const auto ids = [&libraries](std::vector<std::string> more, int code) {
    more.insert(more.end(), libraries.begin(), libraries.end());
    return finding_ids(validate_document(more, code));
  };
  EXPECT_THAT(ids({"--backend", "vanilla"}, 0), Contains("FMHA-ENV-UNREAD"));
  EXPECT_THAT(ids({"--backend", "trtllm"}, 0), Not(Contains("FMHA-ENV-UNREAD")));
  const std::string model = config_folder("deepseek-ai__DeepSeek-V3");
  const std::string on = "trtllm.enable_mla_skip_correction=true";
  EXPECT_THAT(ids({model, "--device", "b200", "--tp", "8", "--set", on}, 1),
              Contains("FMHA-ENV-SKIPCORR"));
  EXPECT_THAT(ids({model, "--device", "h200", "--tp", "8", "--set", on}, 1),
              Not(Contains("FMHA-ENV-SKIPCORR")));
}

TEST(ValidateVariable, RefusalOfAModel_IsSaidOnce) {
  const json::Value document =
      validate_document({config_folder("meta-llama__Meta-Llama-3.1-8B"), "--engine", "trtllm",
                         "--env", "TLLM_FMHA_LIBS=Fallback"},
                        1);
  EXPECT_EQ(findings_of(document, "FMHA-ENV-UNKNOWN").size(), 1U);
  EXPECT_THAT(finding_ids(document), Not(Contains("TRT-FMHA-ENV-UNKNOWN")));
}

TEST(ValidateVariable, SkippedEstimation_IsAWarningAtTheVariable) {
  const auto found = [](const std::string& value) {
    return findings_of(
        validate_document(
            {"--engine", "trtllm", "--env", "TRTLLM_SKIP_KV_CACHE_ESTIMATION=" + value}, 0),
        "KV-ESTIMATION");
  };
  const auto on = found("1");
  ASSERT_EQ(on.size(), 1U);
  EXPECT_THAT(text_of(on[0], "message"), HasSubstr("switched off"));
  EXPECT_EQ(text_of(on[0], "option"), "--env");
  EXPECT_TRUE(found("0").empty());
  EXPECT_TRUE(found("true").empty());
}

}  // namespace
}  // namespace kernelpath::testing
