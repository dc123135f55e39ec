#include "cli/line_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <unistd.h>
#include <vector>

namespace kernelpath::cli {
namespace {

using testing::ElementsAre;

// All lines of `text`; "!" stands for one that is too long.
std::vector<std::string> lines_of(std::string_view text, std::size_t longest) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  EXPECT_EQ(std::fwrite(text.data(), 1, text.size(), file.get()), text.size());
  std::rewind(file.get());
  LineReader reader(fileno(file.get()), longest, [] { return Result<void>(); });
  std::vector<std::string> out;
  for (auto line = reader.next(); line && !line->end; line = reader.next()) {
    EXPECT_EQ(line->number, static_cast<std::int64_t>(out.size()) + 1);
    out.emplace_back(line->too_long ? "!" : line->text);
  }
  return out;
}

TEST(LineReader, Lines_ComeInOrder) {
  EXPECT_THAT(lines_of("a\n\nbc\n", 10), ElementsAre("a", "", "bc"));
  EXPECT_THAT(lines_of("", 10), ElementsAre());
}

TEST(LineReader, LastLineWithoutEnd_Counts) {
  EXPECT_THAT(lines_of("a\nb", 10), ElementsAre("a", "b"));
}

TEST(LineReader, LineOverTheLimit_IsMarkedAndTheNextIsRead) {
  EXPECT_THAT(lines_of("12345\n123456\nx\n", 5), ElementsAre("12345", "!", "x"));
  EXPECT_THAT(lines_of(std::string(300'000, 'y') + "\nx", 100'000), ElementsAre("!", "x"));
  EXPECT_THAT(lines_of(std::string(300'000, 'y'), 100'000), ElementsAre("!"));
}

TEST(LineReader, LinesOverBlockBorders_AreWhole) {
  const std::string one(65'535, 'a');
  const std::string two(70'000, 'b');
  EXPECT_THAT(lines_of(one + "\n" + two + "\nc", 100'000), ElementsAre(one, two, "c"));
}

TEST(LineReader, FailedRead_IsARuntimeError) {
  LineReader reader(-1, 10, [] { return Result<void>(); });
  const Result<LineReader::Line> line = reader.next();
  ASSERT_FALSE(line);
  EXPECT_EQ(line.error().code, ErrorCode::kRuntime);
}

}  // namespace
}  // namespace kernelpath::cli
