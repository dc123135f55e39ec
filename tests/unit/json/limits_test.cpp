#include "parse_helpers.h"

namespace kernelpath::json {
namespace {

using testing::HasSubstr;

std::string nested(int depth, std::string_view open, std::string_view close,
                   std::string_view inner) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += open;
  text += inner;
  for (int i = 0; i < depth; ++i) text += close;
  return text;
}

void expect_limit(std::string_view text, std::string_view part, const Limits& limits = {}) {
  const Error error = bad(text, limits);
  EXPECT_EQ(error.code, ErrorCode::kInputLimit) << error.text();
  EXPECT_THAT(error.message, HasSubstr(std::string(part)));
}

TEST(Parse, SixtyFourLevels_AreTheLimit) {
  good(nested(64, "[", "]", ""));
  good(nested(64, "{\"a\":", "}", "1"));
  good(nested(63, "[", "]", "{}"));
  expect_limit(nested(65, "[", "]", ""), "nested deeper than 64 levels");
  expect_limit(nested(65, "{\"a\":", "}", "1"), "nested deeper than 64 levels");
  expect_limit(nested(64, "[", "]", "{}"), "nested deeper than 64 levels");
  EXPECT_EQ(bad(nested(65, "[", "]", "")).where, "1:65");
}

TEST(Parse, DepthBelowAFieldThatNobodyReads_IsChecked) {
  expect_limit("{\"unused\": " + nested(64, "[", "]", "1") + "}", "nested deeper");
}

TEST(Parse, MillionOpenBrackets_AreRefusedWithoutOverflow) {
  expect_limit(std::string(1'000'000, '['), "nested deeper than 64 levels");
  expect_limit(nested(1'000'000, "[", "]", ""), "nested deeper than 64 levels");
  expect_limit(nested(200'000, "{\"a\":", "}", "1"), "nested deeper than 64 levels");
}

TEST(Parse, TooManyMembers_AreRefused) {
  const Limits limits{.max_members = 3};
  EXPECT_TRUE(parse("[1, 2, 3]", "x", limits));
  EXPECT_TRUE(parse(R"({"a": [1, 2]})", "x", limits));
  expect_limit("[1, 2, 3, 4]", "more than 3 keys and list entries", limits);
  expect_limit(R"({"a": [1, 2], "b": 0})", "more than 3 keys", limits);
}

TEST(Parse, FiveMillionEntries_AreRefused) {
  std::string list = "{\"architectures\": [";
  for (int i = 0; i < 5'000'000; ++i) list += "0,";
  list += "0]}";
  expect_limit(list, "more than 1000000 keys and list entries");
}

TEST(Parse, FiveMillionKeys_AreRefused) {
  std::string object = "{";
  for (int i = 0; i < 3'000'000; ++i) object += "\"\":0,";
  object += "\"\":0}";
  expect_limit(object, "more than 1000000 keys and list entries");
}

TEST(Parse, LongText_IsRefusedByItsLength) {
  expect_limit("[" + std::string(100, ' ') + "]", "the limit is 50", Limits{.max_bytes = 50});
  EXPECT_TRUE(parse(std::string(48, ' ') + "[]", "x", Limits{.max_bytes = 50}));
}

TEST(Parse, TwoHundredThousandKeys_AreRead) {
  std::string text = "{\"quantized_layers\": {";
  for (int i = 0; i < 200'000; ++i) text += "\"model.layers." + std::to_string(i) + "\": \"FP8\",";
  text += "\"last\": 1}}";
  EXPECT_EQ(good(text).root.find("quantized_layers")->members().size(), 200'001U);
}

}  // namespace
}  // namespace kernelpath::json
