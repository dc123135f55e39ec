#include "base/text.h"
#include "json/document.h"
#include "validate_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

// Formats, exit codes and baselines.

namespace kernelpath::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// An error, a warning, and notes; in an options file, so that places have lines.
std::vector<std::string> bad_call(const TemporaryFolder& folder) {
  return {"--yaml",
          folder.write("o.yaml",
                       "kv_cache_config:\n  free_gpu_memory_fraction: 1.5\n  dtype: fp8\n"
                       "attn_backend: vanilla\n"),
          "--device", "h200"};
}

std::string output_as(const TemporaryFolder& folder, const std::string& format) {
  std::vector<std::string> call = bad_call(folder);
  call.insert(call.end(), {"--format", format});
  const Outcome outcome = validate(call);
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  return outcome.out;
}

int run_command(const std::string& command) {
  return std::system(command.c_str());  // NOLINT(cert-env33-c): our own names
}

bool fits_schema(const std::string& schema, const std::string& file) {
  return run_command("python3 " KERNELPATH_SCHEMA_CHECK " " KERNELPATH_SCHEMA_DIR "/" + schema +
                     " '" + file + "'") == 0;
}

bool has_jsonschema() { return run_command("python3 -c 'import jsonschema' 2>/dev/null") == 0; }

TEST(ValidateFormat, Json_FitsItsSchema) {
  if (!has_jsonschema()) GTEST_SKIP() << "python3-jsonschema is not installed";
  const TemporaryFolder folder;
  EXPECT_TRUE(
      fits_schema("validate.schema.json", folder.write("r.json", output_as(folder, "json"))));
}

TEST(ValidateFormat, Sarif_FitsTheStandard) {
  if (!has_jsonschema()) GTEST_SKIP() << "python3-jsonschema is not installed";
  const TemporaryFolder folder;
  EXPECT_TRUE(fits_schema("sarif-2.1.0-used.schema.json",
                          folder.write("r.sarif", output_as(folder, "sarif"))));
}

// What a resolution refuses and what is wrong with a command line stand in no rule table.
std::string sarif_beyond_the_tables(const TemporaryFolder& folder) {
  return folder.write(
      "more.sarif",
      validate({config_folder("meta-llama__Meta-Llama-3.1-8B"), "--device", "cpu", "--command",
                "trtllm-serve m --tp_szie 3 --port 1 --kv_cache_dtype fp9", "--suggest", "--format",
                "sarif"})
          .out);
}

TEST(ValidateFormat, Sarif_OfFindingsBeyondTheTables_FitsTheStandard) {
  if (!has_jsonschema()) GTEST_SKIP() << "python3-jsonschema is not installed";
  const TemporaryFolder folder;
  EXPECT_TRUE(fits_schema("sarif-2.1.0-used.schema.json", sarif_beyond_the_tables(folder)));
}

// The standard says so in words, its schema cannot.
TEST(ValidateFormat, Sarif_RuleIndexLeadsToTheRuleOfTheResult) {
  const TemporaryFolder folder;
  const auto document =
      json::parse_object(read_file(sarif_beyond_the_tables(folder)), "more.sarif");
  ASSERT_TRUE(document);
  const auto rules = json::resolve_pointer(document->root, "/runs/0/tool/driver/rules")->items();
  const auto results = json::resolve_pointer(document->root, "/runs/0/results")->items();
  std::vector<std::string> seen;
  for (const json::Value& result : results) {
    const auto index = static_cast<std::size_t>(result.find("ruleIndex")->as_integer());
    ASSERT_LT(index, rules.size());
    EXPECT_EQ(text_of(rules[index], "id"), text_of(result, "ruleId"));
    seen.push_back(text_of(result, "ruleId"));
  }
  for (const char* id : {"TRT-DEVICE", "COMMAND-UNKNOWN", "COMMAND-VALUE", "COMMAND-UNUSED"}) {
    EXPECT_THAT(seen, ::testing::Contains(id));
  }
}

TEST(ValidateFormat, Sarif_HasTheRegionOfTheYamlValue) {
  const TemporaryFolder folder;
  const auto document = json::parse_object(output_as(folder, "sarif"), "r.sarif");
  ASSERT_TRUE(document);
  const json::Value* const region = json::resolve_pointer(
      document->root, "/runs/0/results/0/locations/0/physicalLocation/region");
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(region->find("startLine")->as_integer(), 2);
  EXPECT_EQ(region->find("startColumn")->as_integer(), 29);
}

TEST(ValidateFormat, Junit_FitsItsSchema) {
  if (run_command("xmllint --version 2>/dev/null") != 0) GTEST_SKIP() << "no xmllint";
  const TemporaryFolder folder;
  const std::string file = folder.write("r.xml", output_as(folder, "junit"));
  EXPECT_EQ(run_command("xmllint --noout --schema " KERNELPATH_SCHEMA_DIR "/junit.xsd '" + file +
                        "' 2>/dev/null"),
            0);
}

TEST(ValidateFormat, Junit_FailsOnlyWhatFailsTheRun) {
  const TemporaryFolder folder;
  const std::string text = output_as(folder, "junit");
  EXPECT_THAT(text, HasSubstr("failures=\"1\""));
  EXPECT_THAT(text, HasSubstr("<testcase classname=\"trtllm\" name=\"KV-FREE-FRACTION\""));
  std::vector<std::string> call = bad_call(folder);
  call.insert(call.end(), {"--format", "junit", "--fail-on", "warn"});
  EXPECT_THAT(validate(call).out, HasSubstr("failures=\"2\""));
}

TEST(ValidateFormat, Jsonl_IsAHeaderAndAFindingALine) {
  const TemporaryFolder folder;
  const std::vector<std::string> lines = split(trim(output_as(folder, "jsonl")), '\n');
  ASSERT_GT(lines.size(), 2U);
  EXPECT_THAT(lines[0], StartsWith("{\"schema\":\"kernelpath/validate\""));
  for (std::size_t i = 1; i < lines.size(); ++i) EXPECT_THAT(lines[i], StartsWith("{\"id\":"));
}

TEST(ValidateFormat, MarkdownAndHtml_NameTheRule) {
  const TemporaryFolder folder;
  EXPECT_THAT(output_as(folder, "md"), HasSubstr("| error | KV-FREE-FRACTION |"));
  const std::string html = output_as(folder, "html");
  EXPECT_THAT(html, StartsWith("<!DOCTYPE html>"));
  EXPECT_THAT(html, HasSubstr("KV-FREE-FRACTION"));
}

TEST(ValidateFormat, Github_IsAWorkflowCommandAFinding) {
  const TemporaryFolder folder;
  const std::string text = output_as(folder, "github");
  EXPECT_THAT(text, HasSubstr("::error file="));
  EXPECT_THAT(text, HasSubstr(",line=2,col=29,title=KV-FREE-FRACTION::"));
}

TEST(ValidateFormat, Github_IsChosenOnItsRunnersUnlessAFormatIsAsked) {
  const TemporaryFolder folder;
  const auto run = [&](std::vector<std::string> more) {
    std::vector<std::string> call = bad_call(folder);
    call.insert(call.end(), more.begin(), more.end());
    return run_program("llm-validate",
                       {.arguments = call, .environment = {{"GITHUB_ACTIONS", "true"}}})
        .out;
  };
  EXPECT_THAT(run({}), HasSubstr("::error file="));
  EXPECT_THAT(run({"--format", "text"}), StartsWith("trtllm"));
  EXPECT_THAT(run({"--json"}), StartsWith("{"));
}

TEST(ValidateFormat, SeveralOutputs_AreOneRun) {
  const TemporaryFolder folder;
  std::vector<std::string> call = bad_call(folder);
  call.insert(call.end(), {"-o", "sarif:" + folder.path("r.sarif"), "-o",
                           "junit:" + folder.path("r.xml"), "-o", "text:-"});
  const Outcome outcome = validate(call);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("KV-FREE-FRACTION"));
  EXPECT_THAT(read_file(folder.path("r.sarif")), HasSubstr("\"version\": \"2.1.0\""));
  EXPECT_THAT(read_file(folder.path("r.xml")), HasSubstr("<testsuites"));
}

TEST(ValidateFailOn, Level_DecidesTheCode) {
  const std::vector<std::string> warned = {"--engine",   "trtllm",  "--backend",
                                           "flashinfer", "--lacks", "flashinfer"};
  const auto code = [](std::vector<std::string> call, const std::string& level) {
    call.insert(call.end(), {"--fail-on", level});
    return validate(call).exit_code;
  };
  EXPECT_EQ(code(warned, "error"), 0);
  EXPECT_EQ(code(warned, "warn"), 1);
  EXPECT_EQ(code(warned, "never"), 0);
  EXPECT_EQ(code({"--backend", "vanilla", "--kv", "nvfp4"}, "error"), 1);
  EXPECT_EQ(code({"--backend", "vanilla", "--kv", "nvfp4"}, "never"), 0);
}

TEST(ValidateRules, RuleAndSkip_ChooseWhatCounts) {
  const std::vector<std::string> call = {"--engine", "trtllm", "--backend",
                                         "vanilla",  "--kv",   "nvfp4"};
  const auto ids = [&call](std::vector<std::string> more, int code) {
    std::vector<std::string> all = call;
    all.insert(all.end(), more.begin(), more.end());
    return finding_ids(validate_document(all, code));
  };
  EXPECT_THAT(ids({}, 1), ::testing::Contains("KV-NVFP4-BACKEND"));
  EXPECT_THAT(ids({"--skip", "kv-nvfp4-backend"}, 0), Not(::testing::Contains("KV-NVFP4-BACKEND")));
  EXPECT_EQ(ids({"--rule", "KV-NVFP4-BACKEND"}, 1), std::vector<std::string>{"KV-NVFP4-BACKEND"});
}

TEST(ValidateBaseline, OnlyNewFindings_Count) {
  const TemporaryFolder folder;
  for (const char* format : {"json", "sarif"}) {
    const std::string baseline =
        folder.write(std::string("base.") + format, output_as(folder, format));
    std::vector<std::string> call = bad_call(folder);
    call.insert(call.end(), {"--baseline", baseline});
    const Outcome same = validate(call);
    EXPECT_EQ(same.exit_code, 0) << format << same.err;
    EXPECT_THAT(same.out, HasSubstr("in the baseline"));
    call.insert(call.end(), {"--set", "trtllm.mla_skip_correction_threshold=99"});
    const Outcome more = validate(call);
    EXPECT_EQ(more.exit_code, 1) << format;
    EXPECT_THAT(more.out, HasSubstr("1 error"));
  }
}

TEST(ValidateBaseline, FileOfAnotherKind_IsAnInputError) {
  const TemporaryFolder folder;
  EXPECT_EQ(validate({"--kv", "fp8", "--baseline", folder.write("x.json", "{}")}).exit_code, 3);
  EXPECT_EQ(validate({"--kv", "fp8", "--baseline", folder.path("none")}).exit_code, 3);
}

TEST(ValidateReport, SameInput_GivesTheSameBytes) {
  const TemporaryFolder folder;
  for (const char* format : {"text", "json", "sarif", "junit", "html", "md", "github"}) {
    EXPECT_EQ(output_as(folder, format), output_as(folder, format)) << format;
  }
}

TEST(ValidateScript, Example_JudgesEveryDeployment) {
  const TemporaryFolder folder;
  const std::string config =
      read_file(config_folder("meta-llama__Meta-Llama-3.1-8B") + "/config.json");
  for (const char* name : {"good", "bad"}) {
    (void)folder.write(std::string("deployments/") + name + "/model/config.json", config);
  }
  (void)folder.write("deployments/good/extra_llm_api_options.yaml", "max_batch_size: 64\n");
  (void)folder.write("deployments/bad/extra_llm_api_options.yaml", "max_batch_sise: 64\n");
  const std::string run = "cd '" + folder.path() +
                          "' && PATH=" KERNELPATH_BIN_DIR ":$PATH bash " KERNELPATH_DOCS_DIR
                          "/ci/llm-validate.sh";
  const int status = run_command(run);
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_THAT(read_file(folder.path("reports/good.xml")), HasSubstr("failures=\"0\""));
  EXPECT_THAT(read_file(folder.path("reports/bad.xml")), HasSubstr("ARG-UNKNOWN"));
  EXPECT_THAT(read_file(folder.path("reports/bad.sarif")), HasSubstr("ARG-UNKNOWN"));
}

}  // namespace
}  // namespace kernelpath::testing
