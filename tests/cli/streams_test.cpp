#include "base/text.h"
#include "json/document.h"
#include "run_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

// Streams, exit codes, determinism, pipes, signals and files (cli.md, section 1).

namespace kernelpath::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string model() { return config_folder("01-ai__Yi-34B"); }

// A batch that answers for about as long as a test may wait.
std::string long_batch() {
  std::string out;
  for (int i = 0; i < 3000; ++i) out += R"({"id":1,"model":")" + model() + "\"}\n";
  return out;
}

TEST(Streams, Answer_IsOnStandardOutputAlone) {
  const Outcome outcome = inspect({model(), "--quiet"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("LlamaForCausalLM"));
  EXPECT_EQ(outcome.err, "");
}

TEST(Streams, Log_IsOnStandardErrorAlone) {
  const Outcome outcome = inspect({model(), "-vv"});
  EXPECT_EQ(outcome.out, inspect({model()}).out);
  EXPECT_THAT(outcome.err, HasSubstr("llm-inspect: info: read "));
  const Outcome as_json = inspect({model(), "-v", "--log-json"});
  for (const std::string& line : split(as_json.err, '\n')) {
    if (!line.empty()) {
      EXPECT_TRUE(json::parse_object(line, "")) << line;
    }
  }
}

TEST(Streams, SameInput_GivesTheSameBytes) {
  for (const char* name : {"01-ai__Yi-34B", "Qwen__Qwen3.5-35B-A3B"}) {
    for (const char* format : {"text", "json", "jsonl", "md"}) {
      const std::vector<std::string> call = {config_folder(name), "--format", format, "--why",
                                             "--layers",          "--show",   "all"};
      const Outcome first = run_program(
          "llm-inspect", {.arguments = call, .environment = {{"LC_ALL", "C"}, {"TZ", "UTC"}}});
      const Outcome second = run_program(
          "llm-inspect",
          {.arguments = call, .environment = {{"LC_ALL", "de_DE.UTF-8"}, {"TZ", "Asia/Tokyo"}}});
      EXPECT_EQ(first.exit_code, 0) << first.err;
      EXPECT_FALSE(first.out.empty());
      EXPECT_EQ(first.out, second.out) << name << " " << format;
    }
  }
}

TEST(Streams, StandardInput_IsAModel) {
  const std::string text = read_file(model() + "/config.json");
  const Outcome outcome = run_program("llm-inspect", {.arguments = {"-"}, .input = text});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("LlamaForCausalLM"));
}

TEST(Streams, ClosedPipe_EndsQuietlyWithTheResultsCode) {
  const TemporaryFolder folder;
  const std::string batch = folder.write("batch.jsonl", long_batch());
  const Outcome outcome =
      run_program("llm-inspect", {.arguments = {"--batch", batch}, .close_output_after = 100});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
}

TEST(Streams, FullDevice_IsARuntimeError) {
  const Outcome outcome = inspect({model(), "-o", "/dev/full"});
  EXPECT_EQ(outcome.exit_code, 6);
  EXPECT_THAT(outcome.err, HasSubstr("error[RUNTIME]"));
}

TEST(Streams, Interrupt_KeepsWhatIsComplete) {
  const TemporaryFolder folder;
  const std::string batch = folder.write("batch.jsonl", long_batch());
  for (const auto& [signal, code] : {std::pair{SIGINT, 130}, std::pair{SIGTERM, 143}}) {
    const Outcome outcome = run_program(
        "llm-inspect", {.arguments = {"--batch", batch}, .signal_after_output = signal});
    EXPECT_EQ(outcome.exit_code, code);
    ASSERT_FALSE(outcome.out.empty());
    EXPECT_EQ(outcome.out.back(), '\n');
    for (const std::string& line : split(outcome.out, '\n')) {
      if (!line.empty()) {
        EXPECT_TRUE(json::parse_object(line, "")) << line.substr(0, 200);
      }
    }
  }
}

TEST(Streams, OutputFiles_AreSeveralReportsOfOneRun) {
  const TemporaryFolder folder;
  const Outcome outcome = inspect({model(), "-o", "json:" + folder.path("a"), "-o",
                                   "md:" + folder.path("b"), "-o", folder.path("c")});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(read_file(folder.path("a")), inspect({model(), "--json"}).out);
  EXPECT_EQ(read_file(folder.path("b")), inspect({model(), "--format", "md"}).out);
  EXPECT_EQ(read_file(folder.path("c")), inspect({model()}).out);
}

TEST(Streams, FailedRun_LeavesNoFile) {
  const TemporaryFolder folder;
  const Outcome outcome = inspect({"/no/such/model", "-o", folder.path("a")});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Streams, Color_FollowsTheRules) {
  const auto run = [](std::vector<std::string> more,
                      std::vector<std::pair<std::string, std::string>> environment) {
    more.push_back(model());
    return run_program("llm-inspect",
                       {.arguments = std::move(more), .environment = std::move(environment)})
        .out;
  };
  EXPECT_THAT(run({}, {}), Not(HasSubstr("\x1b")));
  EXPECT_THAT(run({}, {{"CLICOLOR_FORCE", "1"}}), HasSubstr("\x1b["));
  EXPECT_THAT(run({"--color", "always"}, {{"NO_COLOR", "1"}}), HasSubstr("\x1b["));
  EXPECT_THAT(run({"--color", "never"}, {{"CLICOLOR_FORCE", "1"}}), Not(HasSubstr("\x1b")));
}

TEST(Streams, Help_IsTheAnswerToNothing) {
  const Outcome outcome = inspect({});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("usage: llm-inspect"));
}

// llm-inspect on a terminal.
std::pair<std::string, int> inspect_on_terminal(std::vector<std::string> arguments,
                                                const std::string& variable) {
  return run_on_terminal("llm-inspect", std::move(arguments), {"TERM=xterm", variable});
}

TEST(Streams, Terminal_GetsColorUnlessNoColorIsSet) {
  EXPECT_THAT(inspect_on_terminal({model()}, "A=B").first, HasSubstr("\x1b["));
  EXPECT_THAT(inspect_on_terminal({model()}, "NO_COLOR=1").first, Not(HasSubstr("\x1b[")));
}

TEST(Streams, TerminalAsStandardInput_GetsTheShortHelp) {
  for (const std::vector<std::string>& call :
       {std::vector<std::string>{"-"}, std::vector<std::string>{"--batch", "-"}}) {
    const auto [text, code] = inspect_on_terminal(call, "A=B");
    EXPECT_EQ(code, 2);
    EXPECT_THAT(text, HasSubstr("usage: llm-inspect"));
  }
}

}  // namespace
}  // namespace kernelpath::testing
