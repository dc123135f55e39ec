// The dialect of tokenizer files. What is expected was asked of the Python library `tokenizers`
// 0.23.3, whose patterns Oniguruma reads.

#include "tokenizer/regex.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kernelpath::tokenizer {
namespace {

// The parts of a text that match, or an error.
std::vector<std::string> found(std::string_view pattern, std::string_view text) {
  const auto regex = Regex::compile(pattern);
  if (!regex) return {"error: " + regex.error().message};
  std::vector<Match> matches;
  const auto done = regex->find_all(text, matches);
  if (!done) return {"error: " + done.error().message};
  std::vector<std::string> out;
  for (const Match& match : matches) {
    if (match.is_match) out.emplace_back(text.substr(match.begin, match.end - match.begin));
  }
  return out;
}

using Parts = std::vector<std::string>;

TEST(Regex, WhiteSpace_IsTheUnicodeProperty) {
  EXPECT_EQ(found(R"(\s+)", "a\u0085b\u00a0\u2003c\u180ed\u200be"),
            (Parts{"\u0085", "\u00a0\u2003"}));
  EXPECT_EQ(found(R"([^\S\n]+)", "a \n b"), (Parts{" ", " "}));
}

TEST(Regex, Word_CountsMarksAndConnectors) {
  EXPECT_EQ(found(R"(\w+)", "b_c\u0301‿e Ⅳⓐ"), (Parts{"b_c\u0301‿e", "Ⅳⓐ"}));
  EXPECT_EQ(found(R"(\W+)", "a-b"), (Parts{"-"}));
}

TEST(Regex, Word_OfLatin1DiffersWithinSets) {
  EXPECT_EQ(found(R"(\w+)", "a²b"), (Parts{"a²b"}));
  EXPECT_EQ(found(R"([\w]+)", "a²b"), (Parts{"a", "b"}));
}

TEST(Regex, HexDigit_IsNotHorizontalSpace) {
  EXPECT_EQ(found(R"(\h+)", "xfac es"), (Parts{"fac", "e"}));
  EXPECT_EQ(found(R"(\H)", "ag"), (Parts{"g"}));
  EXPECT_EQ(found(R"([\h])", "ag"), (Parts{"a"}));
}

TEST(Regex, VerticalTab_IsNoLineFeed) { EXPECT_EQ(found(R"(\v)", "a\x0b\n"), (Parts{"\x0b"})); }

TEST(Regex, IntervalWithPlus_Repeats) {
  EXPECT_EQ(found(R"(\p{N}{1,3}+)", "1234567"), (Parts{"1234567"}));
  EXPECT_EQ(found(R"((?:ab){2}+)", "ababababab"), (Parts{"abababab"}));
}

TEST(Regex, PlusWithPlus_IsPossessive) {
  EXPECT_EQ(found("a++a", "aaa"), Parts{});
  EXPECT_EQ(found("a++b", "aab"), (Parts{"aab"}));
}

TEST(Regex, IntervalWithoutLowerBound_StartsAtZero) {
  EXPECT_EQ(found(R"(\p{N}{,2})", "123"), (Parts{"12", "3"}));
  EXPECT_EQ(found("a{x}", "a{x}"), (Parts{"a{x}"}));
}

TEST(Regex, Interval_MayBeReluctant) { EXPECT_EQ(found("a{1,2}?", "aaa"), (Parts{"a", "a", "a"})); }

TEST(Regex, Sets_MayBeIntersectedAndNested) {
  EXPECT_EQ(found(R"([\p{Lu}&&[^A-C]])", "ABCDE"), (Parts{"D", "E"}));
  EXPECT_EQ(found("[a[bc]]", "abcd"), (Parts{"a", "b", "c"}));
  EXPECT_EQ(found("[^a[bc]]+", "abcde"), (Parts{"de"}));
  EXPECT_EQ(found("[a&&]", "a&"), Parts{});
}

TEST(Regex, Set_TakesBracketAndHyphenAsThemselves) {
  EXPECT_EQ(found("[]a]", "a]b"), (Parts{"a", "]"}));
  EXPECT_EQ(found("[a-]+", "a-b"), (Parts{"a-"}));
  EXPECT_EQ(found(R"([\w-x]+)", "a-x!"), (Parts{"a-x"}));
  EXPECT_EQ(found(R"([*--]+)", "*+,-."), (Parts{"*+,-"}));
}

TEST(Regex, BracketExpressions_AreUnicode) {
  EXPECT_EQ(found("[[:punct:]]+", "a!b$c。d€e"), (Parts{"!", "$", "。", "€"}));
  EXPECT_EQ(found(R"(\p{Punct}+)", "a!b$c"), (Parts{"!"}));
  EXPECT_EQ(found("[[:^alpha:]]+", "ab12é"), (Parts{"12"}));
  EXPECT_EQ(found(R"(\p{Alnum}+)", "a1²"), (Parts{"a1"}));
}

// U+3002 is used with Han and other scripts, but is of none.
TEST(Regex, Script_IsWithoutItsExtensions) {
  EXPECT_EQ(found(R"(\p{Han}+|\p{Hiragana}+)", "漢字。ひら"), (Parts{"漢字", "ひら"}));
  EXPECT_EQ(found(R"([^\p{Han}]+)", "漢。a"), (Parts{"。a"}));
  EXPECT_EQ(found(R"(\P{Han}+|\p{^Latin})", "漢。a"), (Parts{"漢", "。a"}));
}

TEST(Regex, Anchors_AreOfLines) {
  EXPECT_EQ(found("^a|b$", "a\na b\nab"), (Parts{"a", "a", "b", "a", "b"}));
  EXPECT_EQ(found("(?m:.+)", "a\nb"), (Parts{"a\nb"}));
  EXPECT_EQ(found(".+", "a\nb"), (Parts{"a", "b"}));
}

TEST(Regex, WordBoundary_KnowsMarks) {
  EXPECT_EQ(found(R"(\bfoo\b)", "foo a\u0301foo foo²"), (Parts{"foo"}));
  EXPECT_EQ(found(R"(\Bo)", "oo o"), (Parts{"o"}));
}

TEST(Regex, Characters_ByNumber) {
  EXPECT_EQ(found(R"(\u4e00+)", "一一二"), (Parts{"一一"}));
  EXPECT_EQ(found(R"(\x{4e00})", "一"), (Parts{"一"}));
  EXPECT_EQ(found(R"(\xE4\xB8\x80)", "一"), (Parts{"一"}));
  EXPECT_EQ(found(R"([\x41-\x43]+)", "ABCD"), (Parts{"ABC"}));
}

TEST(Regex, EscapedLetterWithoutMeaning_IsItself) {
  EXPECT_EQ(found(R"(\Qa\E)", "QaE"), (Parts{"QaE"}));
}

TEST(Regex, EmptyMatches_StandBetweenOthersOnly) {
  const auto regex = Regex::compile("x*").value();
  std::vector<Match> matches;
  ASSERT_TRUE(regex.find_all("abxxc", matches).has_value());
  std::vector<std::pair<std::size_t, std::size_t>> parts;
  for (const Match& match : matches) {
    if (match.begin != match.end) parts.emplace_back(match.begin, match.end);
  }
  EXPECT_EQ(parts,
            (std::vector<std::pair<std::size_t, std::size_t>>{{0, 1}, {1, 2}, {2, 4}, {4, 5}}));
}

TEST(Regex, Llama3Pattern_SplitsAsRecorded) {
  constexpr std::string_view pattern =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  EXPECT_EQ(found(pattern, "I'LL pay  $1234.5\n\n ok"),
            (Parts{"I", "'LL", " pay", " ", " $", "123", "4", ".", "5", "\n\n", " ok"}));
}

TEST(Regex, IsolatedOption_HoldsForItsGroup) {
  EXPECT_EQ(found("(?:a(?i)b|c)d", "aBd Cd cD"), (Parts{"aBd"}));
}

TEST(Regex, BrokenPatterns_AreRefused) {
  for (const char* pattern : {"(", "[a", "a)", "*", "\\", R"(\p{Nonsense})", R"(\p{L)", "(?s).",
                              "(*UTF)", R"(\C)", R"(\u12)", R"(\xff)", "[z-a]", R"((?<=a+)b)"}) {
    const auto regex = Regex::compile(pattern);
    ASSERT_FALSE(regex.has_value()) << pattern;
    EXPECT_EQ(regex.error().code, ErrorCode::kConfigValue) << pattern;
  }
  EXPECT_EQ(Regex::compile("\xff").error().code, ErrorCode::kConfigValue);
  EXPECT_EQ(Regex::compile(std::string(70'000, 'a')).error().code, ErrorCode::kInputLimit);
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "[";
  EXPECT_FALSE(Regex::compile(deep).has_value());
}

TEST(Regex, BacktrackingWithoutEnd_IsStopped) {
  const auto regex = Regex::compile("(a+)+$").value();
  std::vector<Match> matches;
  const auto done = regex.find_all(std::string(5000, 'a') + "b", matches);
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().code, ErrorCode::kInputLimit);
}

TEST(Regex, LongRunOfSpaces_IsNoProblem) {
  EXPECT_EQ(found(R"(\s+(?!\S)|\s+)", std::string(1 << 20, ' ') + "a").size(), 2U);
}

}  // namespace
}  // namespace kernelpath::tokenizer
