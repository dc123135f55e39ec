#include "base/text.h"
#include "equality.h"
#include "json/document.h"
#include "json/writer.h"
#include "run_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

// The batch protocol (cli.md, section 9), and all recorded answers through the program.

namespace kernelpath::testing {
namespace {

using ::testing::HasSubstr;

std::string model() { return config_folder("01-ai__Yi-34B"); }

struct BatchResult {
  std::vector<json::Value> answers;
  int exit_code = 0;
  std::string err;
};

BatchResult run_batch(const std::string& lines, std::vector<std::string> arguments = {}) {
  const TemporaryFolder folder;
  arguments.insert(arguments.end(), {"--batch", folder.write("batch.jsonl", lines)});
  const Outcome outcome = run_program("llm-inspect", {.arguments = arguments, .timeout_s = 120});
  BatchResult out{.answers = {}, .exit_code = outcome.exit_code, .err = outcome.err};
  for (const std::string& line : split(outcome.out, '\n')) {
    if (line.empty()) continue;
    Result<json::Document> document = json::parse_object(line, "answer");
    EXPECT_TRUE(document) << line.substr(0, 200);
    if (document) out.answers.push_back(document->root);
  }
  return out;
}

std::string error_code(const json::Value& answer) {
  const json::Value* error = answer.find("error");
  return error == nullptr ? "answered" : error->find("code")->as_string();
}

TEST(Batch, ModelLine_GivesTheInspectDocument) {
  const BatchResult result =
      run_batch(R"({"id":"x3","model":")" + model() +
                R"(","engine":"all","device":"h200","kv_cache_dtype":"fp8","kind":"ignored"})");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  ASSERT_EQ(result.answers.size(), 1U);
  EXPECT_EQ(result.answers[0].find("id")->as_string(), "x3");
  const Outcome direct =
      inspect({model(), "--device", "h200", "--kv-cache-dtype", "fp8", "--json"});
  EXPECT_EQ(*result.answers[0].find("out"), json::parse(direct.out, "")->root);
}

TEST(Batch, CommandLine_GivesTheDefaultsOfEachLine) {
  const std::string line = R"({"id":1,"model":")" + model() + "\"}\n";
  const std::string own = R"({"id":2,"model":")" + model() + R"(","device":"b200"})";
  const BatchResult result = run_batch(line + own, {"--device", "h200", "--engine", "trtllm"});
  ASSERT_EQ(result.answers.size(), 2U);
  const auto device = [&](std::size_t i) {
    return result.answers[i].find("out")->find("inputs")->items()[0].find("device")->as_string();
  };
  EXPECT_EQ(device(0), "h200");
  EXPECT_EQ(device(1), "b200");
}

TEST(Batch, LinesThatCannotBeAnswered_DoNotStopTheOthers) {
  const BatchResult result = run_batch(
      "not json\n[1]\n\n{\"id\":{\"a\":[1]}}\n{\"id\":7,\"model\":\"/no/such\"}\n"
      "{\"id\":8,\"engine\":\"nobody\",\"op\":\"resolve\",\"in\":{}}\n"
      "{\"id\":9,\"engine\":\"trtllm\",\"op\":\"no_such_op\",\"in\":{}}\n"
      "{\"id\":10,\"model\":3}\n{\"id\":11,\"model\":\"" +
      model() +
      "\"}\n"
      "{\"id\":12,\"model\":\"" +
      model() + "\",\"backend\":\"foo\"}");
  EXPECT_EQ(result.exit_code, 1);
  ASSERT_EQ(result.answers.size(), 9U);
  EXPECT_TRUE(result.answers[0].find("id")->is_null());
  EXPECT_EQ(error_code(result.answers[0]), "INPUT-JSON");
  EXPECT_EQ(error_code(result.answers[1]), "BATCH-REQUEST");
  EXPECT_EQ(json::to_text(*result.answers[2].find("id")), "{\"a\":[1]}");
  EXPECT_EQ(error_code(result.answers[3]), "INPUT-MISSING");
  EXPECT_EQ(error_code(result.answers[4]), "USAGE-UNKNOWN");
  EXPECT_EQ(error_code(result.answers[5]), "BATCH-REQUEST");
  EXPECT_EQ(error_code(result.answers[6]), "BATCH-REQUEST");
  EXPECT_EQ(error_code(result.answers[7]), "answered");
  EXPECT_EQ(error_code(result.answers[8]), "USAGE-UNKNOWN");
}

TEST(Batch, MisspeltField_IsNamedOnStandardError) {
  const BatchResult result = run_batch(R"({"id":1,"model":")" + model() + R"(","devcie":"h200"})");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("'devcie' is ignored; did you mean device"));
}

TEST(Batch, OverlongLine_IsAnErrorOfItsOwn) {
  const BatchResult result =
      run_batch("{\"id\":1,\"x\":\"" + std::string(17U << 20U, 'y') + "\"}\n{\"id\":2}\n");
  ASSERT_EQ(result.answers.size(), 2U);
  EXPECT_EQ(error_code(result.answers[0]), "INPUT-LIMIT");
  EXPECT_EQ(result.answers[1].find("id")->as_integer(), 2);
}

TEST(Batch, Answers_StreamBeforeTheInputEnds) {
  // The second line is written only after the first one's answer was seen: signal_after_output
  // would not fire if answers waited for the end of the input.
  const Outcome outcome = run_program("llm-inspect", {.arguments = {"--batch", "-"},
                                                      .input = "{\"id\":1}\n",
                                                      .keep_input_open = true,
                                                      .signal_after_output = 15});
  EXPECT_EQ(outcome.exit_code, 143);
  EXPECT_THAT(outcome.out, HasSubstr("{\"id\":1,"));
}

class Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(Golden, RecordedAnswers_ComeOutOfTheProgram) {
  const std::vector<golden::Case> cases = golden::read_cases("trtllm/" + GetParam() + ".jsonl");
  ASSERT_FALSE(cases.empty());
  std::string lines;
  for (const golden::Case& entry : cases) {
    lines += json::to_text(json::Value::object({{"id", json::Value::string(entry.id)},
                                                {"engine", json::Value::string("trtllm")},
                                                {"op", json::Value::string(GetParam())},
                                                {"in", entry.in()}})) +
             "\n";
  }
  const BatchResult result = run_batch(lines);
  EXPECT_EQ(result.exit_code, 0);
  ASSERT_EQ(result.answers.size(), cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(result.answers[i].find("id")->as_string(), cases[i].id);
    const json::Value* out = result.answers[i].find("out");
    if (out == nullptr) {
      ADD_FAILURE() << cases[i].id << ": " << json::to_text(result.answers[i]);
      continue;
    }
    EXPECT_EQ(golden::trtllm_difference(cases[i].record, *out), "") << cases[i].id;
  }
}

INSTANTIATE_TEST_SUITE_P(Trtllm, Golden, ::testing::Values("resolve", "backend"),
                         [](const auto& row) { return row.param; });

}  // namespace
}  // namespace kernelpath::testing
