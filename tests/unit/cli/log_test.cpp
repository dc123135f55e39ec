#include "cli/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <unistd.h>

namespace kernelpath::cli {
namespace {

// What a Log writes to a pipe.
template <class Action>
std::string logged(const LogStyle& style, Action action) {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  action(Log("llm-test", style, ends[1]));
  close(ends[1]);
  std::string out(4096, '\0');
  const ssize_t count = read(ends[0], out.data(), out.size());
  close(ends[0]);
  out.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return out;
}

const Error kError = {.code = ErrorCode::kInputJson,
                      .message = "unexpected ','",
                      .file = "a\x1b[31m.json",
                      .where = "12:7",
                      .value = ",",
                      .hint = "remove it",
                      .near_matches = {"x", "y"}};

TEST(Log, ErrorAsText_IsOneLineAndAHint) {
  EXPECT_EQ(logged({}, [](const Log& log) { log.error(kError); }),
            "llm-test: error[INPUT-JSON]: a\\x1b[31m.json: 12:7: unexpected ',' (,)\n"
            "  hint: did you mean x or y? remove it\n");
}

TEST(Log, ErrorAsJson_HasTheDocumentedFields) {
  EXPECT_EQ(logged({.json_errors = true}, [](const Log& log) { log.error(kError); }),
            "{\"schema\":\"kernelpath/error\",\"schema_version\":\"1.0.0\",\"code\":\"INPUT-JSON\","
            "\"exit_code\":3,\"exit_name\":\"input\",\"file\":\"a\\u001b[31m.json\","
            "\"where\":\"12:7\",\"what\":\"unexpected ','\",\"value\":\",\",\"hint\":\"remove it\","
            "\"near_matches\":[\"x\",\"y\"]}\n");
}

TEST(Log, LessImportantThanTheLevel_IsNotWritten) {
  EXPECT_EQ(logged({.level = LogLevel::kWarn}, [](const Log& log) { log.info("x"); }), "");
  EXPECT_EQ(logged({.level = LogLevel::kInfo}, [](const Log& log) { log.info("x"); }),
            "llm-test: info: x\n");
  EXPECT_EQ(logged({.level = LogLevel::kError}, [](const Log& log) { log.warn("x"); }), "");
}

TEST(Log, Json_IsOneObjectALine) {
  EXPECT_EQ(logged({.json = true}, [](const Log& log) { log.warn("a\nb"); }),
            "{\"level\":\"warn\",\"message\":\"a\\nb\"}\n");
}

TEST(Log, Hint_IsForText) {
  EXPECT_EQ(logged({}, [](const Log& log) { log.hint("x"); }), "hint: x\n");
  EXPECT_EQ(logged({.json_errors = true}, [](const Log& log) { log.hint("x"); }), "");
  EXPECT_EQ(logged({.hints = false}, [](const Log& log) { log.hint("x"); }), "");
}

}  // namespace
}  // namespace kernelpath::cli
