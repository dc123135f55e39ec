#include "base/text.h"

#include <gtest/gtest.h>

#include <array>

namespace kernelpath {
namespace {

TEST(EscapeForTerminal, ControlBidiAndBrokenUtf8_AreSpelledOut) {
  EXPECT_EQ(escape_for_terminal("a\x1b[2Jb"), "a\\x1b[2Jb");
  EXPECT_EQ(escape_for_terminal(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(escape_for_terminal("\xe2\x80\xae"), "\\u202e");
  EXPECT_EQ(escape_for_terminal("\xc2\x9b"), "\\x9b");
  EXPECT_EQ(escape_for_terminal("\xc0\x80"), "\\xc0\\x80");
  EXPECT_EQ(escape_for_terminal("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(escape_for_terminal("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(escape_for_terminal("caf\xc3\xa9 \xe2\x80\xa6"), "café …");
}

TEST(Shorten, LongText_IsCutAtCodePointBoundary) {
  EXPECT_EQ(shorten("abcdef", 3), "abc…");
  EXPECT_EQ(shorten("abc", 3), "abc");
  EXPECT_EQ(shorten("a\xc3\xa9z", 2), "a…");
}

TEST(NearMatches, Typo_FindsNearestFirstAndIgnoresCase) {
  constexpr std::array<std::string_view, 4> kNames = {"VANILLA", "TRTLLM", "FLASHINFER", "FLASH"};
  EXPECT_EQ(near_matches("flashinfr", kNames), (std::vector<std::string>{"FLASHINFER"}));
  EXPECT_EQ(near_matches("trtlm", kNames), (std::vector<std::string>{"TRTLLM"}));
  EXPECT_TRUE(near_matches("zzz", kNames).empty());
  EXPECT_TRUE(near_matches(std::string(100000, 'a'), kNames).empty());
}

TEST(Split, EmptyParts_AreKept) {
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_TRUE(split("", ',').empty());
}

TEST(JoinWords, ThreeWords_ReadAsProse) {
  const std::vector<std::string> words = {"a", "b", "c"};
  EXPECT_EQ(join_words(words), "a, b and c");
  EXPECT_EQ(join_words(words, "or"), "a, b or c");
}

}  // namespace
}  // namespace kernelpath
