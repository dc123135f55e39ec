#include "validate_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

// Options files, engines' command lines, and input that is wrong.

namespace kernelpath::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

TEST(ValidateYaml, Finding_PointsIntoTheFile) {
  const TemporaryFolder folder;
  const std::string file = folder.write(
      "o.yaml", "kv_cache_config:\n  free_gpu_memory_fraction: 1.5\nattn_backand: TRTLLM\n");
  const json::Value document = validate_document({"--yaml", file}, 1);
  const auto fraction = findings_of(document, "KV-FREE-FRACTION");
  ASSERT_EQ(fraction.size(), 1U);
  EXPECT_EQ(text_of(fraction[0], "file"), file);
  EXPECT_EQ(fraction[0].find("line")->as_integer(), 2);
  EXPECT_EQ(fraction[0].find("column")->as_integer(), 29);
  const auto unknown = findings_of(document, "ARG-UNKNOWN");
  ASSERT_EQ(unknown.size(), 1U);
  EXPECT_THAT(text_of(unknown[0], "message"), HasSubstr("near: attn_backend"));
}

TEST(ValidateYaml, LaterFileAndOptions_Win) {
  const TemporaryFolder folder;
  const std::string first = folder.write("a.yaml", "max_beam_width: 0\nattn_backend: VANILLA\n");
  const std::string second = folder.write("b.yaml", "attn_backend: FLASHINFER\n");
  const Outcome files = validate({"--yaml", first, "--yaml", second});
  EXPECT_THAT(files.out, HasSubstr("FLASHINFER; KV auto"));
  const Outcome option = validate({"--yaml", first, "--yaml", second, "--backend", "TRTLLM"});
  EXPECT_THAT(option.out, HasSubstr("TRTLLM; KV auto"));
}

TEST(ValidateYaml, Resolution_ReadsItsValues) {
  const TemporaryFolder folder;
  const std::string file = folder.write("o.yaml", "kv_cache_config: {dtype: fp8}\n");
  const Outcome outcome =
      validate({config_folder("meta-llama__Meta-Llama-3.1-8B"), "--yaml", file, "--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\"summary\": \"TRTLLM; KV fp8\""));
}

TEST(ValidateYaml, RulesAboutAbsentArguments_AreForFilesOnly) {
  const TemporaryFolder folder;
  const std::string file =
      folder.write("o.yaml", "speculative_config: {decoding_type: Eagle3, max_draft_len: 3}\n");
  EXPECT_THAT(finding_ids(validate_document({"--yaml", file}, 1)),
              Contains("SPEC-DRAFT-MODEL-MISSING"));
  EXPECT_EQ(validate({"--speculative", "eagle3", "--draft-tokens", "3"}).exit_code, 0);
}

TEST(ValidateYaml, BrokenFile_IsAnInputErrorWithItsPlace) {
  const TemporaryFolder folder;
  const Outcome outcome = validate({"--yaml", folder.write("bad.yaml", "a: [1,\nb: 2\n")});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("bad.yaml: 3:1: "));
  EXPECT_EQ(validate({"--yaml", folder.path("none.yaml")}).exit_code, 3);
  EXPECT_EQ(validate({"--yaml", folder.write("list.yaml", "- a\n- b\n")}).exit_code, 3);
}

TEST(ValidateCommand, Options_BecomeArguments) {
  const json::Value document = validate_document(
      {"--command",
       "trtllm-serve serve some/model --tp_size 2 --kv_cache_free_gpu_memory_fraction "
       "1.5"},
      1);
  const auto found = findings_of(document, "KV-FREE-FRACTION");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(text_of(found[0], "option"), "--kv_cache_free_gpu_memory_fraction");
}

TEST(ValidateCommand, WhatIsNotUnderstood_IsNeverDroppedSilently) {
  const json::Value document = validate_document(
      {"--command",
       "FOO=1 mpirun trtllm-serve m --tp_szie 8 --kv_cache_dtype fp9 --port 80 --backend pytorch"},
      1);
  const auto message = [&document](const std::string& id) {
    const auto found = findings_of(document, id);
    return found.empty() ? std::string("no " + id) : text_of(found[0], "message");
  };
  EXPECT_THAT(message("COMMAND-UNKNOWN"), HasSubstr("--tp_szie: trtllm-serve has no such option; "
                                                    "did you mean --tp_size"));
  EXPECT_THAT(message("COMMAND-VALUE"), HasSubstr("fp9 is none of auto, fp8, nvfp4"));
  EXPECT_THAT(message("COMMAND-UNUSED"), HasSubstr("--port"));
  EXPECT_THAT(message("COMMAND-NOT-READ"), HasSubstr("mpirun"));
  EXPECT_THAT(message("COMMAND-DEPRECATED"), HasSubstr("--backend"));
  EXPECT_THAT(message("OPTION-UNREAD"), HasSubstr("FOO"));
}

TEST(ValidateCommand, OptionsFileAndModel_AreReadWhereTheyAre) {
  const TemporaryFolder folder;
  const std::string file = folder.write("o.yaml", "attn_backend: VANILLA\n");
  const json::Value document = validate_document(
      {"--command", "trtllm-serve " + config_folder("meta-llama__Meta-Llama-3.1-8B") +
                        " --extra_llm_api_options " + file},
      0);
  const json::Value& input = document.find("inputs")->items()[0];
  EXPECT_EQ(text_of(input, "model"), "meta-llama__Meta-Llama-3.1-8B");
  EXPECT_THAT(text_of(input.find("engines")->items()[0], "summary"), HasSubstr("VANILLA"));
}

TEST(ValidateCommand, UnknownProgram_NamesThoseThatAreKnown) {
  const Outcome outcome = validate({"--command", "some-server serve x"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("trtllm-serve"));
  EXPECT_EQ(validate({"--command", "trtllm-serve 'x"}).exit_code, 2);
}

struct WrongUse {
  std::string name;
  std::vector<std::string> arguments;
  std::string says;
};

class ValidateWrongUse : public ::testing::TestWithParam<WrongUse> {};

TEST_P(ValidateWrongUse, IsCodeTwoAndAnExplanation) {
  const Outcome outcome = validate(GetParam().arguments);
  EXPECT_EQ(outcome.exit_code, 2) << outcome.out;
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(
    Options, ValidateWrongUse,
    ::testing::Values(
        WrongUse{"Nothing", {}, "nothing to judge"},
        WrongUse{"UnknownRule", {"--kv", "fp8", "--rule", "KV-DTYP"}, "did you mean KV-DTYPE"},
        WrongUse{"UnknownSkip", {"--kv", "fp8", "--skip", "KV-DTYPE,nope"}, "nope"},
        WrongUse{"UnknownBackend", {"--backend", "flashinfr"}, "did you mean FLASHINFER"},
        WrongUse{"UnknownField",
                 {"--set", "trtllm.kv_cache_confg.dtype=fp8"},
                 "did you mean kv_cache_config.dtype"},
        WrongUse{"TwoValues",
                 {"--kv", "fp8", "--set", "trtllm.kv_cache_config.dtype=nvfp4"},
                 "--kv states \"fp8\""},
        WrongUse{"FailOn", {"--kv", "fp8", "--fail-on", "note"}, "not one of error, warn or never"},
        WrongUse{"InspectsOption", {"--kv", "fp8", "--why-not", "TRTLLM"}, "another program"},
        WrongUse{"Format", {"--kv", "fp8", "--format", "xml"}, "not one of"},
        WrongUse{"TwoDevices", {"--kv", "fp8", "--device", "h200", "--sm", "90"}, "two machines"},
        WrongUse{"MatrixAndBatch", {"--matrix", "--batch", "x"}, "two kinds"},
        WrongUse{"UnknownAxis", {"--matrix=backnd"}, "did you mean backend"},
        WrongUse{"AxisWithoutValues", {"--matrix=max_num_tokens"}, "no known values"},
        WrongUse{"MatrixFormat", {"--matrix", "--format", "sarif"}, "no such format"}),
    [](const auto& row) { return row.param.name; });

TEST(ValidateWrongUse, EqualValuesTwice_AreNoConflict) {
  const Outcome outcome = validate({"--kv", "fp8", "--set", "trtllm.kv_cache_config.dtype=fp8"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST(ValidateInput, ModelThatCannotBeRead_DoesNotHideTheOthers) {
  const Outcome outcome =
      validate({"/no/such/model", config_folder("meta-llama__Meta-Llama-3.1-8B"), "--json"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.out, HasSubstr("meta-llama__Meta-Llama-3.1-8B"));
}

TEST(ValidateInput, StandardInput_IsAModel) {
  const Outcome outcome = run_program(
      "llm-validate",
      {.arguments = {"-", "--tp", "3"},
       .input = read_file(config_folder("meta-llama__Meta-Llama-3.1-8B") + "/config.json")});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("HEADS-NOT-DIVISIBLE"));
}

}  // namespace
}  // namespace kernelpath::testing
