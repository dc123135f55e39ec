#include "base/text.h"
#include "equality.h"
#include "json/document.h"
#include "json/writer.h"
#include "validate_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

// llm-validate --batch, and all recorded answers through the program; --list, --explain.

namespace kernelpath::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<json::Value> answers_to(const std::string& lines, int exit_code) {
  const TemporaryFolder folder;
  const Outcome outcome =
      run_program("llm-validate",
                  {.arguments = {"--batch", folder.write("batch.jsonl", lines)}, .timeout_s = 120});
  EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
  std::vector<json::Value> out;
  for (const std::string& line : split(outcome.out, '\n')) {
    if (line.empty()) continue;
    const Result<json::Document> document = json::parse_object(line, "answer");
    EXPECT_TRUE(document) << line.substr(0, 200);
    if (document) out.push_back(document->root);
  }
  return out;
}

TEST(ValidateBatch, RecordedAnswers_ComeOutOfTheProgram) {
  const std::vector<golden::Case> cases = golden::read_cases("trtllm/validate.jsonl");
  ASSERT_GT(cases.size(), 300U);
  std::string lines;
  for (const golden::Case& entry : cases) {
    const json::Value request = json::Value::object({{"id", json::Value::string(entry.id)},
                                                     {"engine", json::Value::string("trtllm")},
                                                     {"op", json::Value::string("validate")},
                                                     {"in", entry.in()}});
    lines += json::to_text(request) + "\n";
  }
  const std::vector<json::Value> answers = answers_to(lines, 0);
  ASSERT_EQ(answers.size(), cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(text_of(answers[i], "id"), cases[i].id);
    ASSERT_NE(answers[i].find("out"), nullptr) << cases[i].id;
    EXPECT_EQ(golden::trtllm_difference(cases[i].record, *answers[i].find("out")), "")
        << cases[i].id;
    EXPECT_EQ(*answers[i].find("rule"), *cases[i].record.find("rule")) << cases[i].id;
  }
}

TEST(ValidateBatch, ModelLine_GivesTheValidateDocument) {
  const std::string model = config_folder("meta-llama__Meta-Llama-3.1-8B");
  const std::vector<json::Value> answers =
      answers_to(R"({"id":"a","model":")" + model + R"(","tp":3})", 1);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(*answers[0].find("out"), validate_document({model, "--tp", "3"}, 1));
}

TEST(ValidateBatch, OtherOps_AreNamedAndDoNotStopTheOthers) {
  const std::vector<json::Value> answers =
      answers_to(R"({"id":1,"engine":"trtllm","op":"resolve","in":{}})"
                 "\n"
                 R"({"id":2,"engine":"trtllm","in":{"attn_backend":"VANILLA"}})",
                 1);
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_THAT(text_of(*answers[0].find("error"), "message"), HasSubstr("llm-inspect"));
  EXPECT_EQ(text_of(*answers[1].find("out"), "verdict"), "ok");
}

TEST(ValidateList, Rules_HaveLevelAndCondition) {
  const Outcome outcome = validate({"--list", "rules", "--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\"name\": \"MPKV-BACKEND\""));
  EXPECT_THAT(outcome.out, HasSubstr("\"when\": "));
  EXPECT_THAT(outcome.out, HasSubstr("\"name\": \"MEM-WEIGHTS\""));
}

TEST(ValidateExplain, Rule_SaysWhenWhyAndWhatToDo) {
  const Outcome outcome = validate({"--explain", "mpkv-backend"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("MPKV-BACKEND  (rule of trtllm 2026-11: error, arguments)"));
  for (const char* part : {"  when: ", "  why: ", "  do: ", "  source: TensorRT-LLM "}) {
    EXPECT_THAT(outcome.out, HasSubstr(part));
  }
}

TEST(ValidateExplain, EveryIdOfEveryFinding_IsExplained) {
  const json::Value document =
      validate_document({config_folder("meta-llama__Meta-Llama-3.1-8B"), "--tp", "3", "--kv", "fp8",
                         "--command", "trtllm-serve m --tp_szie 3 --port 1"},
                        1);
  for (const std::string& id : finding_ids(document)) {
    EXPECT_EQ(validate({"--explain", id}).exit_code, 0) << id;
  }
}

TEST(ValidateHelp, Options_AreThoseOfTheProgram) {
  const std::string text = validate({"--help"}).out;
  EXPECT_THAT(text, HasSubstr("--suggest"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("--why-not")));
  EXPECT_EQ(validate({"--completions", "bash"}).exit_code, 0);
}

}  // namespace
}  // namespace kernelpath::testing
