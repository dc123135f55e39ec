// Section C of the bad inputs: syntax. Each fault is named at its own place.
#include "parse_helpers.h"

namespace kernelpath::json {
namespace {

constexpr ErrorCode kSyntax = ErrorCode::kInputJson;

TEST(Parse, EmptyFile_IsRefused) { expect_bad("", kSyntax, "", "empty file"); }

TEST(Parse, OnlyWhiteSpaceOrByteOrderMark_HasNoValue) {
  expect_bad(" \r\n\t ", kSyntax, "", "no JSON value");
  expect_bad("\xef\xbb\xbf", kSyntax, "", "no JSON value");
  expect_bad("\xef\xbb\xbf \n", kSyntax, "", "no JSON value");
}

TEST(Parse, TrailingContent_IsRefused) {
  expect_bad("{\"a\": 1} {\"b\": 2}", kSyntax, "1:10",
             "trailing content after the JSON value: '{'");
  expect_bad("{\"a\": 1}\ntext", kSyntax, "2:1", "trailing content after the JSON value: 't'");
  expect_bad("{\"a\": 1}}", kSyntax, "1:9", "trailing content");
  expect_bad("{\"a\": 1}\"", kSyntax, "1:9", "trailing content");
  expect_bad("[1],", kSyntax, "1:4", "trailing content");
  expect_bad("1 2", kSyntax, "1:3", "trailing content");
  expect_bad("\"a\"\"b\"", kSyntax, "1:4", "trailing content");
  expect_bad("null x", kSyntax, "1:6", "trailing content");
}

TEST(ParseObject, OtherTopLevel_IsRefused) {
  for (const auto& [text, type] :
       {std::pair("[1]", "array"), {"\"x\"", "string"}, {" 12", "integer"}, {"null", "null"}}) {
    const auto document = parse_object(text, "config.json");
    ASSERT_FALSE(document) << text;
    EXPECT_EQ(document.error().code, kSyntax);
    EXPECT_EQ(document.error().message, std::string("top level must be an object, found ") + type);
    EXPECT_EQ(document.error().where, *text == ' ' ? "1:2" : "1:1");
  }
  EXPECT_TRUE(parse_object("{}", "config.json"));
  EXPECT_TRUE(parse("[1]", "config.json"));
}

TEST(Parse, TrailingComma_IsRefusedAtTheBracket) {
  expect_bad("{\"a\": 1,\n}", kSyntax, "2:1", "unexpected '}' after a comma");
  expect_bad("[1, 2, ]", kSyntax, "1:8", "unexpected ']' after a comma");
  expect_bad("[,1]", kSyntax, "1:2", "unexpected ','");
  expect_bad("[1,,2]", kSyntax, "1:4", "unexpected ','");
  expect_bad("{,}", kSyntax, "1:2", "unexpected ','");
}

TEST(Parse, Comment_IsRefused) {
  expect_bad("{\n  // note\n  \"a\": 1}", kSyntax, "2:3", "unexpected '/' (JSON has no comments)");
  expect_bad("{\"a\": 1 /* note */}", kSyntax, "1:9", "JSON has no comments");
  expect_bad("# note\n{}", kSyntax, "1:1", "JSON has no comments");
}

TEST(Parse, QuotesOfOtherLanguages_AreRefused) {
  expect_bad("{'a': 1}", kSyntax, "1:2", "strings need double quotes");
  expect_bad("{\"a\": 'b'}", kSyntax, "1:7", "strings need double quotes");
  expect_bad("{a: 1}", kSyntax, "1:2", "unexpected 'a', expected a key in double quotes");
  expect_bad("{1: 1}", kSyntax, "1:2", "unexpected '1', expected a key in double quotes");
}

TEST(Parse, MissingPunctuation_NamesWhatIsExpected) {
  expect_bad("{\"a\" 1}", kSyntax, "1:6", "unexpected '1', expected ':'");
  expect_bad("{\"a\"}", kSyntax, "1:5", "unexpected '}', expected ':'");
  expect_bad("{\"a\": 1 \"b\": 2}", kSyntax, "1:9", "unexpected '\"', expected ',' or '}'");
  expect_bad("[1 2]", kSyntax, "1:4", "unexpected '2', expected ',' or ']'");
  expect_bad("[1}", kSyntax, "1:3", "unexpected '}', expected ',' or ']'");
  expect_bad("{\"a\": [1}, \"b\": 2]", kSyntax, "1:9", "unexpected '}', expected ',' or ']'");
  expect_bad("[\"a\": 1]", kSyntax, "1:5", "unexpected ':', expected ',' or ']'");
  expect_bad("{\"a\": }", kSyntax, "1:7", "unexpected '}', expected a value");
  expect_bad("{\"a\": 1, 2}", kSyntax, "1:10", "unexpected '2', expected a key");
  expect_bad("]", kSyntax, "1:1", "unexpected ']', expected a value");
}

TEST(Parse, BadNumber_IsRefusedAlsoWhereNoRuleReadsIt) {
  expect_bad("{\"x\": 1.2.3}", kSyntax, "1:10", "unexpected '.', expected ',' or '}'");
  expect_bad("[01]", kSyntax, "1:2", "a number may not start with 0");
  expect_bad("[-01]", kSyntax, "1:3", "a number may not start with 0");
  expect_bad("[+1]", kSyntax, "1:2", "numbers have no plus sign");
  expect_bad("[0x10]", kSyntax, "1:3", "hexadecimal");
  expect_bad("[.5]", kSyntax, "1:2", "numbers start with a digit");
  expect_bad("[5.]", kSyntax, "1:4", "a digit must follow the decimal point");
  expect_bad("[1e]", kSyntax, "1:4", "the exponent has no digits");
  expect_bad("[1e+]", kSyntax, "1:5", "the exponent has no digits");
  expect_bad("[- 1]", kSyntax, "1:3", "a digit must follow '-'");
  expect_bad("[1_000]", kSyntax, "1:3", "unexpected '_'");
  expect_bad("[1a]", kSyntax, "1:3", "unexpected 'a'");
}

TEST(Parse, LiteralThatOnlyLooksLikeOne_IsRefused) {
  for (const char* word : {"Infinit", "nan", "INFINITY", "Infinityx", "NAN", "True", "None", "nul",
                           "-Infinit", "-NaN", "-infinity", "truefalse", "inf"}) {
    const std::string text = std::string("{\"a\": ") + word + "}";
    expect_bad(text, kSyntax, "1:7", std::string("unknown literal '") + word + "'");
  }
  expect_bad("[1NaN]", kSyntax, "1:3", "unexpected 'N'");
  expect_bad("[NaN1]", kSyntax, "1:2", "unknown literal");
  expect_bad("[+Infinity]", kSyntax, "1:2", "numbers have no plus sign");
  expect_bad("{NaN: 1}", kSyntax, "1:2", "unexpected 'N', expected a key");
}

TEST(Parse, BadEscape_IsRefusedAtTheBackslash) {
  expect_bad("[\"ab\\x41\"]", kSyntax, "1:5", "unknown escape '\\x'");
  expect_bad("[\"\\u12G4\"]", kSyntax, "1:3", "four hexadecimal digits");
  expect_bad("[\"\\u\"]", kSyntax, "1:3", "four hexadecimal digits");
  expect_bad("{\"\\q\": 1}", kSyntax, "1:3", "unknown escape '\\q'");
}

TEST(Parse, LoneSurrogateInAKey_IsRefused) {
  expect_bad("{\"a\": 1, \"\\ud800\": 2}", kSyntax, "1:10", "half of a surrogate pair");
}

TEST(Parse, ControlByteInString_IsRefused) {
  expect_bad("[\"a\nb\"]", kSyntax, "1:4", "control byte 0x0A");
  expect_bad(std::string_view("[\"a\0b\"]", 7), kSyntax, "1:4", "control byte 0x00");
  expect_bad(std::string_view("[1\0]", 4), kSyntax, "1:3", "unexpected byte 0x00");
  expect_bad("[1\f]", kSyntax, "1:3", "unexpected byte 0x0C");
  expect_bad("[1\x1a]", kSyntax, "1:3", "unexpected byte 0x1A");
  expect_bad("[\x7f]", kSyntax, "1:2", "unexpected byte 0x7F");
}

TEST(Parse, OtherSpaces_AreNamed) {
  expect_bad(
      "[\xc2\xa0"
      "1]",
      kSyntax, "1:2", "(U+00A0)");
  expect_bad("[1, \xef\xbb\xbf 2]", kSyntax, "1:5", "unexpected U+FEFF");
}

TEST(Parse, UnclosedString_NamesWhereItStarts) {
  expect_bad("{\"a\": \"bc", kSyntax, "1:10",
             "unexpected end at byte 9, the string that starts at 1:7 is not closed");
  expect_bad("\xef\xbb\xbf{\"a", kSyntax, "1:4", "unexpected end at byte 6");
}

TEST(Parse, LaterLine_CountsLinesAndBytes) {
  expect_bad("{\r\n  \"é\": ,\r\n}", kSyntax, "2:9", "unexpected ','");
}

}  // namespace
}  // namespace kernelpath::json
