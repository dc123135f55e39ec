// Section B of the bad inputs, and files of another kind.
#include "parse_helpers.h"

namespace kernelpath::json {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::string_view_literals;

constexpr ErrorCode kEncoding = ErrorCode::kInputEncoding;

TEST(Parse, ByteOrderMark_IsSkippedWithAWarning) {
  const Document document = good("\xef\xbb\xbf{\"a\": 1}");
  EXPECT_EQ(document.root.find("a")->as_integer(), 1);
  EXPECT_THAT(codes(document), ElementsAre("JSON-BOM"));
  EXPECT_THAT(document.warnings[0].message, HasSubstr("Python"));
  EXPECT_EQ(document.text, "{\"a\": 1}");
  EXPECT_EQ(document.position(document.root.find("a")->offset()).column, 7U);
}

TEST(Parse, Utf16_IsNamed) {
  expect_bad("\xff\xfe{\0}\0"sv, kEncoding, "", "UTF-16, expected UTF-8");
  expect_bad("\xfe\xff\0{\0}"sv, kEncoding, "", "UTF-16, expected UTF-8");
  expect_bad("{\0}\0"sv, kEncoding, "", "UTF-16, expected UTF-8");
  expect_bad("\0{\0}"sv, kEncoding, "", "UTF-16, expected UTF-8");
  expect_bad("{\0\n\0"sv, kEncoding, "", "UTF-16, expected UTF-8");
  expect_bad("\xff\xfe\0\0{\0\0\0"sv, kEncoding, "", "UTF-32, expected UTF-8");
  expect_bad("{\0\0\0}\0\0\0"sv, kEncoding, "", "UTF-32, expected UTF-8");
  expect_bad("\0\0\0{\0\0\0}"sv, kEncoding, "", "UTF-32, expected UTF-8");
  expect_bad("1\0"sv, kEncoding, "", "UTF-16, expected UTF-8");
  expect_bad("\0\0"sv, ErrorCode::kInputJson, "1:1", "unexpected byte 0x00");
}

TEST(Parse, Latin1Byte_IsRefusedWithItsOffset) {
  expect_bad("{\"a\": \"caf\xe9\"}", kEncoding, "1:11", "invalid UTF-8: byte 0xE9 at byte 10");
  expect_bad("\xef\xbb\xbf[\"\xe9\"]", kEncoding, "1:3", "invalid UTF-8: byte 0xE9 at byte 5");
  expect_bad("{\xe9: 1}", kEncoding, "1:2", "invalid UTF-8");
}

TEST(Parse, IllFormedUtf8_IsRefused) {
  for (const std::string_view bytes :
       {"\xc0\x80"sv, "\xed\xa0\x80"sv, "\xf4\x90\x80\x80"sv, "\xf8\x88\x80\x80\x80"sv, "\x80"sv,
        "\xe0\x80\x80"sv, "\xf0\x80\x80\x80"sv, "\xe2\x82"sv, "\xff"sv}) {
    expect_bad("[\"a" + std::string(bytes) + "\"]", kEncoding, "1:4", "invalid UTF-8");
  }
}

TEST(Parse, WellFormedUtf8_IsKept) {
  const std::string text = "é€𝄞\xf4\x8f\xbf\xbf";
  EXPECT_EQ(good("\"" + text + "\"").root.as_string(), text);
}

TEST(Parse, LoneSurrogateInAValue_ReadsAsReplacementWithAWarning) {
  const Document document = good(R"({"a": [1, "x\ud800y"], "b": "\udc00", "c": "\ud800\u0041"})");
  const Value* const value = resolve_pointer(document.root, "/a/1");
  ASSERT_NE(value, nullptr);
  EXPECT_TRUE(value->has_lone_surrogate());
  EXPECT_EQ(value->as_string(), "x\xef\xbf\xbdy");
  EXPECT_EQ(document.root.find("c")->as_string(),
            "\xef\xbf\xbd"
            "A");
  EXPECT_THAT(codes(document),
              ElementsAre("JSON-LONE-SURROGATE", "JSON-LONE-SURROGATE", "JSON-LONE-SURROGATE"));
  EXPECT_EQ(document.warnings[0].where, "/a/1");
}

TEST(Parse, SurrogatePairAndEscapes_AreResolved) {
  const Document document =
      good(R"(["\ud834\udd1e", "\"\\\/\b\f\n\r\t", "\u00e9\u20AC", "\u0000"])");
  EXPECT_EQ(document.root.items()[0].as_string(), "𝄞");
  EXPECT_EQ(document.root.items()[1].as_string(), "\"\\/\b\f\n\r\t");
  EXPECT_EQ(document.root.items()[2].as_string(), "é€");
  EXPECT_EQ(document.root.items()[3].as_string(), "\0"sv);
  EXPECT_THAT(document.warnings, IsEmpty());
}

TEST(Parse, CarriageReturns_AreWhiteSpace) {
  const Document document = good("{\r\n\"a\": 1\r\n}\r\n");
  EXPECT_EQ(document.position(document.root.find("a")->offset()).line, 2U);
  EXPECT_THAT(document.warnings, IsEmpty());
}

TEST(Parse, HtmlPage_IsNamed) {
  for (const char* page : {"<!DOCTYPE html>\n<html>", "  <html lang=en>", "\n<HTML>"}) {
    expect_bad(page, ErrorCode::kInputKind, "", "HTML page");
  }
  expect_bad("<a>", ErrorCode::kInputJson, "1:1", "unexpected '<'");
}

TEST(Parse, GitLfsPointer_IsNamed) {
  const Error error = bad("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n");
  EXPECT_EQ(error.code, ErrorCode::kInputKind);
  EXPECT_THAT(error.message, HasSubstr("Git LFS pointer"));
  EXPECT_THAT(error.hint, HasSubstr("git lfs pull"));
}

}  // namespace
}  // namespace kernelpath::json
