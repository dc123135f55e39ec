#include "base/text.h"
#include "json/document.h"
#include "json/writer.h"
#include "run_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

// Options and devices: cases/bad_inputs section H, and what the command line promises.

namespace kernelpath::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string model() { return config_folder("01-ai__Yi-34B"); }

json::Value document_of(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {model(), "--json"});
  const Outcome outcome = inspect(std::move(arguments));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const Result<json::Document> document = json::parse_object(outcome.out, "stdout");
  return document ? document->root : json::Value();
}

const json::Value& first_input(const json::Value& document) {
  return document.find("inputs")->items()[0];
}

const json::Value& first_engine(const json::Value& document) {
  return first_input(document).find("engines")->items()[0];
}

void expect_usage_error(std::vector<std::string> arguments, const std::string& what) {
  arguments.push_back(model());
  const Outcome outcome = inspect(std::move(arguments));
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, StartsWith("llm-inspect: error[USAGE"));
  EXPECT_THAT(outcome.err, HasSubstr(what));
}

TEST(Options, H1_CapabilitySpellings_HaveOneNormalForm) {
  for (const char* text : {"9", "90", "sm90", "sm_90a", "9.0"}) {
    EXPECT_EQ(first_input(document_of({"--sm", text})).find("device")->as_string(), "sm90") << text;
  }
  const std::vector<std::pair<const char*, const char*>> blackwell = {
      {"10.0", "sm100"}, {"10.3", "sm103"}, {"12.0", "sm120"}, {"12.1", "sm121"}, {"100", "sm100"}};
  for (const auto& [text, normal] : blackwell) {
    EXPECT_EQ(first_input(document_of({"--sm", text})).find("device")->as_string(), normal);
  }
  for (const char* text : {"0", "-1", "99.9", "sm", "9.x"})
    expect_usage_error({"--sm", text}, "--sm");
}

TEST(Options, H2_ProductNameOfSeveralChips_AsksForMore) {
  expect_usage_error({"--device", "h100"}, "--sm");
  expect_usage_error({"--device", "h300"}, "did you mean");
}

TEST(Options, H3_ImpossibleSizes_AreRefused) {
  expect_usage_error({"--tp", "0"}, "at least 1");
  expect_usage_error({"--pp", "-2"}, "at least 1");
  expect_usage_error({"--tp", "9223372036854775808"}, "64 bits");
}

TEST(Options, H4_PageSize_IsPositiveAndLimited) {
  expect_usage_error({"--page-size", "0"}, "at least 1");
  expect_usage_error({"--block-size", "-16"}, "at least 1");
  expect_usage_error({"--page-size", "2147483648"}, "--page-size: must be at most 1048576");
}

TEST(Options, H5_NegativeContext_IsRefused) {
  expect_usage_error({"--max-model-len", "-1"}, "at least 1");
}

TEST(Options, H5_ContextOverTheModels_IsAWarningAndA64BitTotal) {
  const json::Value document = document_of({"--max-model-len", "4294967296"});
  const json::Value& engine = first_engine(document);
  EXPECT_THAT(json::to_text(*engine.find("warnings")), HasSubstr("more than the model's 4096"));
  const json::Value& memory = *engine.find("memory");
  EXPECT_EQ(memory.find("kv_bytes_per_sequence")->as_integer(),
            memory.find("kv_bytes_per_token")->as_integer() << 32U);
}

TEST(Options, H6_TypeThatNoEngineKnows_IsRefusedWithWhatThereIs) {
  expect_usage_error({"--kv", "zork"}, "they have auto, fp8,");
  expect_usage_error({"--kv", "nvpf4"}, "did you mean nvfp4?");
  expect_usage_error({"--dtype", "float12"}, "did you mean float16");
}

TEST(Options, H6_TypeThatNoKernelServes_IsTheEnginesRefusal) {
  const json::Value document = document_of({"--kv", "FP8", "--dtype", "fp8"});
  EXPECT_EQ(first_engine(document).find("status")->as_string(), "error");
  EXPECT_EQ(first_engine(document).find("error")->find("code")->as_string(), "NO-FMHA");
}

TEST(Options, UnknownNames_NameTheNearest) {
  expect_usage_error({"--engine", "trtlm"}, "did you mean trtllm?");
  expect_usage_error({"--engine", "trtllm@2020-01"}, "2026-11");
  expect_usage_error({"--backend", "flashinfr"}, "did you mean FLASHINFER?");
  expect_usage_error({"--why-not", "flashinfr"}, "FLASHINFER");
  expect_usage_error({"--require", "trtllm=flashinfr"}, "FLASHINFER");
  expect_usage_error({"--show", "memry"}, "memory");
  expect_usage_error({"--set", "trtllm.attn_backnd=TRTLLM"}, "attn_backend");
  expect_usage_error({"--lacks", "flashinfr"}, "did you mean flashinfer?");
  expect_usage_error({"--has", "nobody"}, "no engine looks for such a package");
  expect_usage_error({"--speculative", "eagle4"}, "eagle3");
  expect_usage_error({"--devcie", "h200"}, "did you mean --device?");
}

TEST(Options, UnknownBackend_SaysWhatTheEngineWouldHaveDone) {
  expect_usage_error({"--backend", "foo"}, "TRTLLM");
}

TEST(Options, Conflicts_AreNamed) {
  expect_usage_error({"--device", "h200", "--sm", "90"}, "two machines");
  expect_usage_error({"--lacks", "flashinfer", "--has", "flashinfer"}, "flashinfer");
  EXPECT_THAT(inspect({model(), "--json", "--format", "md"}).err, HasSubstr("two formats"));
  expect_usage_error({"--batch", "-"}, "MODEL");
}

TEST(Options, Sizes_NeedAUnit) {
  expect_usage_error({"--memory", "80G"}, "bare unit letter");
  const json::Value document = document_of({"--sm", "90", "--memory", "80GB"});
  EXPECT_EQ(first_input(document).find("device_facts")->find("memory_bytes")->as_integer(),
            80'000'000'000);
}

TEST(Options, Require_DecidesTheExitCode) {
  const Outcome met = inspect({model(), "--require", "trtllm=trtllm"});
  EXPECT_EQ(met.exit_code, 0);
  const Outcome unmet = inspect({model(), "--require", "trtllm=FLASHINFER", "--format", "json"});
  EXPECT_EQ(unmet.exit_code, 1);
  EXPECT_TRUE(json::parse_object(unmet.out, ""));
  EXPECT_THAT(unmet.err, HasSubstr("FLASHINFER"));
}

TEST(Options, MissingPackage_FallsBackWithReasonAndSource) {
  const json::Value document =
      document_of({"--engine", "trtllm", "--backend", "flashinfer", "--lacks", "flashinfer"});
  const json::Value& engine = first_engine(document);
  EXPECT_EQ(engine.find("status")->as_string(), "fallback");
  EXPECT_EQ(engine.find("attention")->find("requested")->as_string(), "FLASHINFER");
  EXPECT_EQ(engine.find("attention")->find("selected")->as_string(), "TRTLLM");
  const std::string rule = engine.find("attention")->find("fallback")->find("rule")->as_string();
  bool has_source = false;
  for (const json::Value& step : engine.find("steps")->items()) {
    if (step.find("rule")->as_string() != rule) continue;
    has_source = has_source || step.find("source")->find("file") != nullptr;
  }
  EXPECT_TRUE(has_source) << rule;
}

TEST(Options, WhyNot_SaysWhatToInstall) {
  const Outcome outcome = inspect({model(), "--engine", "trtllm", "--backend", "flashinfer",
                                   "--lacks", "flashinfer", "--why-not", "FLASHINFER"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("flashinfer"));
  EXPECT_THAT(outcome.out, HasSubstr("do: "));
}

TEST(Options, Precedence_IsShownByPrintConfig) {
  const TemporaryFolder folder;
  const std::string config = folder.write(
      "kernelpath/config.toml", "dtype = \"float16\"\nkv = \"fp8\"\n[llm-inspect]\npp = 2\n");
  const Outcome outcome = run_program(
      "llm-inspect",
      {.arguments = {"--print-config", "--tp", "4"},
       .environment = {{"XDG_CONFIG_HOME", folder.path()}, {"KERNELPATH_KV", "nvfp4"}}});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("tp = 4  # command line\n"));
  EXPECT_THAT(outcome.out, HasSubstr("kv-cache-dtype = \"nvfp4\"  # environment KERNELPATH_KV\n"));
  EXPECT_THAT(outcome.out, HasSubstr("dtype = \"float16\"  # config file " + config + ":1\n"));
  EXPECT_THAT(outcome.out, HasSubstr("pp = 2  # config file"));
  EXPECT_THAT(outcome.out, HasSubstr("device = \"h100-sxm\"  # default\n"));
}

TEST(Options, PrintConfig_IsAConfigFile) {
  const TemporaryFolder folder;
  const Outcome first = inspect({"--print-config", "--tp", "4", "--memory", "80GiB", "--set",
                                 "trtllm.attn_backend=VANILLA", "--lacks", "a,b"});
  const std::string file = folder.write("c.toml", first.out);
  const Outcome second = inspect({"--print-config", "--config-file", file, "--json"});
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_THAT(second.out, HasSubstr("trtllm.attn_backend=VANILLA"));
  EXPECT_THAT(second.out, HasSubstr("85899345920"));
}

TEST(Options, H7_VariableThatTheEngineDoesNotRead_IsAWarning) {
  const json::Value document = document_of({"--env", "TLLM_NO_SUCH=1"});
  const auto warnings = first_engine(document).find("warnings")->items();
  ASSERT_FALSE(warnings.empty());
  EXPECT_THAT(warnings.back().as_string(), HasSubstr("TLLM_NO_SUCH"));
}

TEST(Options, EnginesVariables_AreNotReadFromTheShell) {
  const auto run = [](std::vector<std::string> more) {
    more.insert(more.end(), {model(), "--json"});
    return run_program("llm-inspect", {.arguments = std::move(more),
                                       .environment = {{"TLLM_FMHA_LIBS", "nonsense"}}})
        .out;
  };
  EXPECT_EQ(run({}), inspect({model(), "--json"}).out);
  EXPECT_EQ(run({"--env-from-process"}),
            inspect({model(), "--json", "--env", "TLLM_FMHA_LIBS=nonsense"}).out);
}

// The driver's library of a made-up machine stands in for this one's.
TEST(Options, DeviceAuto_SaysHowTheDeviceWasFound) {
  const auto run = [](const std::string& folder) {
    return run_program(
        "llm-inspect",
        {.arguments = {model(), "--engine", "trtllm", "--device", "auto", "--show", "device"},
         .environment = {
             {"LD_LIBRARY_PATH", std::string(KERNELPATH_BUILD_DIR) + "/tests/drivers/" + folder}}});
  };
  const Outcome found = run("nvml");
  EXPECT_EQ(found.exit_code, 0) << found.err;
  EXPECT_THAT(found.out,
              HasSubstr("device cuda:0 (sm90, 79.6 GiB)   found by: NVML, driver 570.10\n"));
  EXPECT_THAT(found.out, HasSubstr("usable by a process  79.1 GiB (84977057792 bytes)\n"));
  EXPECT_THAT(found.out, HasSubstr("memory bandwidth     3352 GB/s\n"));
  // Whatever this machine has of its own stays out of it: the library that is there says "none".
  const Outcome none = run("nvml_empty");
  EXPECT_EQ(none.exit_code, 0) << none.err;
  EXPECT_THAT(none.out, HasSubstr("found by: "));
}

}  // namespace
}  // namespace kernelpath::testing
