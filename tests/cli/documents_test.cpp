#include "base/text.h"
#include "json/document.h"
#include "run_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

// All real configurations through the program, and every document against its schema.

namespace kernelpath::testing {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> all_configs() {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(KERNELPATH_TEST_DATA "/configs")) {
    if (entry.is_directory()) out.push_back(entry.path() / "config.json");
  }
  std::sort(out.begin(), out.end());
  return out;
}

// Fails the test unless every file fits its schema; skips it where the Python package is missing.
void expect_valid(const std::vector<std::string>& files) {
  std::string command = "python3 " KERNELPATH_CLI_TABLES "/validate_documents.py " +
                        std::string(KERNELPATH_SCHEMA_DIR);
  for (const std::string& file : files) command += " '" + file + "'";
  const int status = std::system(command.c_str());  // NOLINT(cert-env33-c): our own names
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    GTEST_SKIP() << "python3-jsonschema is not installed";
  }
  EXPECT_EQ(status, 0);
}

TEST(Documents, AllConfigs_GiveOneValidDocumentAndCodeZero) {
  const std::vector<std::string> configs = all_configs();
  ASSERT_EQ(configs.size(), 287U);
  std::vector<std::string> call = configs;
  call.insert(call.end(), {"--engine", "trtllm", "--json", "--show", "all"});
  const Outcome outcome = run_program("llm-inspect", {.arguments = call, .timeout_s = 120});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err.substr(0, 2000);
  EXPECT_EQ(outcome.err, "");
  const Result<json::Document> document =
      json::parse_object(outcome.out, "stdout", {.max_bytes = outcome.out.size()});
  ASSERT_TRUE(document) << document.error().text();
  EXPECT_EQ(document->root.find("inputs")->items().size(), configs.size());
  const TemporaryFolder folder;
  expect_valid({folder.write("all.json", outcome.out)});
}

TEST(Documents, EveryEngineAnswer_ExplainsItself) {
  std::vector<std::string> call = all_configs();
  call.insert(call.end(), {"--engine", "trtllm", "--json"});
  const Outcome outcome = run_program("llm-inspect", {.arguments = call, .timeout_s = 120});
  const Result<json::Document> document =
      json::parse_object(outcome.out, "stdout", {.max_bytes = outcome.out.size()});
  ASSERT_TRUE(document);
  for (const json::Value& input : document->root.find("inputs")->items()) {
    const json::Value& engine = input.find("engines")->items()[0];
    const std::string& name = input.find("model")->as_string();
    EXPECT_FALSE(engine.find("steps")->items().empty()) << name;
    const std::string& status = engine.find("status")->as_string();
    const bool refused = status == "unsupported" || status == "error";
    EXPECT_EQ(refused, engine.find("error") != nullptr) << name;
    if (!refused) {
      EXPECT_FALSE(engine.find("model_class")->is_null()) << name;
    }
  }
}

TEST(Documents, OtherAnswers_FitTheirSchemas) {
  const TemporaryFolder folder;
  const std::string model = config_folder("01-ai__Yi-34B");
  const std::vector<std::vector<std::string>> calls = {
      {model, "--why-not", "FLASHINFER", "--lacks", "flashinfer"},
      {model, "--phase", "decode"},
      {model, "--device", "cpu"},
      {model, "--tp", "8", "--kv", "fp8", "--device", "b200"},
      {"--list", "engines"},
      {"--list", "rules"},
      {"--explain", "INPUT-JSON"},
      {"--explain", "TRT-ATTN-FALLBACK"},
      {"--print-config"},
      {"--version"}};
  std::vector<std::string> files;
  for (std::vector<std::string> call : calls) {
    call.emplace_back("--json");
    const Outcome outcome = inspect(std::move(call));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    files.push_back(folder.write(std::to_string(files.size()) + ".json", outcome.out));
  }
  for (const std::vector<std::string>& call :
       {std::vector<std::string>{"/no/such/model"}, std::vector<std::string>{"--devcie", "x"}}) {
    std::vector<std::string> arguments = call;
    arguments.emplace_back("--json");
    files.push_back(
        folder.write(std::to_string(files.size()) + ".json", inspect(std::move(arguments)).err));
  }
  expect_valid(files);
}

TEST(Documents, Jsonl_IsTheSameInLines) {
  const std::vector<std::string> models = {config_folder("01-ai__Yi-34B"),
                                           config_folder("Qwen__Qwen3-8B")};
  const Outcome lines = inspect({models[0], models[1], "--format", "jsonl"});
  const Outcome whole = inspect({models[0], models[1], "--json"});
  const json::Value document = json::parse(whole.out, "")->root;
  const std::vector<std::string> parts = split(lines.out, '\n');
  ASSERT_EQ(parts.size(), 4U);
  EXPECT_EQ(json::parse(parts[0], "")->root.find("schema")->as_string(), "kernelpath/inspect");
  EXPECT_EQ(json::parse(parts[1], "")->root, document.find("inputs")->items()[0]);
  EXPECT_EQ(json::parse(parts[2], "")->root, document.find("inputs")->items()[1]);
}

}  // namespace
}  // namespace kernelpath::testing
