#include "json/document.h"
#include "json/writer.h"
#include "run_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

// --diff: what an upgrade of an engine changes.

namespace kernelpath::testing {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kVersions = {"--diff", "vllm@0.25.1", "vllm@0.33.0"};

Outcome diff(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), kVersions.begin(), kVersions.end());
  return inspect(std::move(arguments));
}

json::Value diff_document(std::vector<std::string> arguments) {
  arguments.emplace_back("--json");
  const Outcome outcome = diff(std::move(arguments));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto parsed = json::parse(outcome.out, "");
  EXPECT_TRUE(parsed) << outcome.out.substr(0, 300);
  return parsed ? parsed->root : json::Value::null();
}

std::string llama() { return config_folder("meta-llama__Meta-Llama-3.1-8B"); }
std::string gpt_oss() { return config_folder("openai__gpt-oss-120b"); }

// The first difference of an aspect of the only model, as "FROM -> TO".
std::string change_of(const json::Value& document, const std::string& aspect) {
  for (const json::Value& row : document.find("models")->items()[0].find("differences")->items()) {
    if (row.find("aspect")->as_string() != aspect) continue;
    return row.find("from")->as_string() + " -> " + row.find("to")->as_string();
  }
  return "none";
}

TEST(Diff, SinksOnConsumerBlackwell_MoveToFlashInfer) {
  const json::Value document = diff_document({gpt_oss(), "--device", "rtx5090", "--tp", "8"});
  EXPECT_EQ(change_of(document, "backend"), "TRITON_ATTN -> FLASHINFER");
}

TEST(Diff, RuleThatChanged_IsNamed) {
  const Outcome outcome = diff({gpt_oss(), "--device", "rtx5090", "--tp", "8"});
  EXPECT_THAT(outcome.out, HasSubstr("VLLM-SEL-SINKS"));
}

TEST(Diff, SameBackend_IsNoDifference) {
  EXPECT_EQ(change_of(diff_document({llama()}), "backend"), "none");
}

TEST(Diff, SeveralModels_HaveASummary) {
  const json::Value document = diff_document({llama(), gpt_oss()});
  EXPECT_EQ(document.find("summary")->find("models")->as_integer(), 2);
  EXPECT_EQ(document.find("schema")->as_string(), "kernelpath/diff");
  const Outcome text = diff({llama(), gpt_oss()});
  EXPECT_THAT(text.out, HasSubstr("vllm@0.25.1 -> vllm@0.33.0: 2 models"));
  const Outcome md = diff({llama(), gpt_oss(), "-f", "md"});
  EXPECT_THAT(md.out, HasSubstr("| what changes | models |"));
}

TEST(Diff, Json_FitsItsSchema) {
  if (std::system("python3 -c 'import jsonschema' 2>/dev/null") != 0) {
    GTEST_SKIP() << "python3-jsonschema is not installed";
  }
  const TemporaryFolder folder;
  const std::string file = folder.path("diff.json");
  EXPECT_EQ(diff({llama(), gpt_oss(), "-o", "json:" + file}).exit_code, 0);
  const std::string command = "python3 " KERNELPATH_SCHEMA_CHECK " " KERNELPATH_SCHEMA_DIR
                              "/diff.schema.json '" +
                              file + "'";
  EXPECT_EQ(std::system(command.c_str()), 0);
}

TEST(Diff, JsonLines_HaveAHeaderAndALineAModel) {
  const Outcome outcome = diff({llama(), gpt_oss(), "-f", "jsonl"});
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 3);
}

TEST(Diff, BatchLine_GivesTheDocument) {
  const TemporaryFolder folder;
  const std::string line = R"({"id":1,"model":")" + llama() +
                           R"(","diff":["vllm@0.25.1","vllm@0.33.0"],"device":"b200"})";
  const Outcome outcome = inspect({"--batch", folder.write("batch.jsonl", line)});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr(R"("schema":"kernelpath/diff")"));
}

TEST(Diff, EnginesOfTwoKinds_CanBeCompared) {
  const Outcome outcome = inspect({llama(), "--diff", "trtllm", "vllm@0.33.0"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("backend"));
}

TEST(Diff, WrongUse_IsRefused) {
  EXPECT_EQ(inspect({llama(), "--diff", "vllm@0.25.1"}).exit_code, 2);
  EXPECT_EQ(inspect({llama(), "--diff", "vllm@0.25.1", "vllm@0.25.1"}).exit_code, 2);
  const Outcome unknown = inspect({llama(), "--diff", "vllm@0.25.1", "vllm@9.9.9"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("0.33.0"));
  EXPECT_EQ(diff({llama(), "--engine", "trtllm"}).exit_code, 2);
}

TEST(Diff, ModelThatCannotBeRead_DoesNotStopTheOthers) {
  const Outcome outcome = diff({"/no/such/model", llama()});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.out, HasSubstr("Llama"));
}

}  // namespace
}  // namespace kernelpath::testing
