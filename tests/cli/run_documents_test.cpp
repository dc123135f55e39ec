// What llm-run prints for machines fits schema/run.schema.json.
#include "run_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace kernelpath::testing {
namespace {

using ::testing::HasSubstr;

// What the check prints, and its exit code.
std::pair<std::string, int> check(const std::string& format, const std::string& text) {
  const TemporaryFolder folder;
  const std::string command = "python3 -B " KERNELPATH_RUN_CHECK " " KERNELPATH_SCHEMA_DIR " " +
                              format + " " + folder.write("out", text) + " 2>&1";
  FILE* const pipe = popen(command.c_str(), "r");
  std::string out;
  char buffer[4096];
  while (const std::size_t count = fread(buffer, 1, sizeof(buffer), pipe)) {
    out.append(buffer, count);
  }
  const int status = pclose(pipe);
  return {out, WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

struct Asked {
  std::string name;
  std::vector<std::string> options;
  int exit_code = 0;
};

class RunDocument : public ::testing::TestWithParam<Asked> {};

TEST_P(RunDocument, FitsItsSchema) {
  const TemporaryFolder folder;
  const std::string prompts = folder.write(
      "prompts.jsonl",
      "{\"id\": \"a\", \"prompt\": \"Hello\", \"max_tokens\": 6, \"stop\": [\"x\"]}\n"
      "{\"id\": \"long\", \"prompt\": \"Hello\", \"max_tokens\": 0}\n"
      "{\"id\": \"b\", \"prompt_ids\": [1, 2, 3], \"max_tokens\": 3, \"ignore_eos\": true}\n");
  for (const std::string format : {"json", "jsonl"}) {
    std::vector<std::string> arguments = {checkpoint(kLlama), "--format", format};
    for (const std::string& option : GetParam().options) {
      arguments.push_back(option == "PROMPTS" ? prompts : option);
    }
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit_code, GetParam().exit_code) << outcome.err;
    const auto [text, code] = check(format, outcome.out);
    EXPECT_EQ(code, 0) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Run, RunDocument,
    ::testing::Values(Asked{"one", {"-p", "Hello", "-n", "4"}},
                      Asked{"logprobs", {"-p", "Hello", "-n", "2", "--logprobs", "3"}},
                      Asked{"drafts",
                            {"-p", "Hello", "-n", "24", "--ignore-eos", "--speculative", "ngram"}},
                      Asked{"plan", {"-p", "Hello", "--dry-run"}},
                      Asked{"comparison", {"--expect", checkpoint(kLlama) + "/golden.json"}},
                      Asked{"batch", {"--prompts", "PROMPTS"}, 1}),
    [](const auto& test) { return test.param.name; });

TEST(RunDocuments, DocumentThatDoesNotFit_IsRefused) {
  Outcome outcome = run({checkpoint(kLlama), "-p", "Hello", "-n", "1", "--json"});
  EXPECT_EQ(check("json", outcome.out).second, 0);
  const std::size_t at = outcome.out.find("\"prompt_tokens\"");
  ASSERT_NE(at, std::string::npos);
  outcome.out.replace(at, 8, "\"Prompt_");
  const auto [text, code] = check("json", outcome.out);
  EXPECT_EQ(code, 1);
  EXPECT_THAT(text, HasSubstr("line 1"));
}

}  // namespace
}  // namespace kernelpath::testing
