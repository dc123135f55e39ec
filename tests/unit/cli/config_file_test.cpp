#include "cli/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelpath::cli {
namespace {

using testing::ElementsAre;

TEST(ParseConfigText, EveryValueForm_IsRead) {
  const auto entries = parse_config_text(
      "a = \"x \\\"y\\\" # no comment\"  # comment\r\n"
      "b = 'C:\\x'\n\nc = -12\n[section]\nd = true\ne = [ \"p\", 'q' , 3, ]\nf = []\n",
      "f.toml");
  ASSERT_TRUE(entries) << entries.error().text();
  ASSERT_EQ(entries->size(), 6);
  EXPECT_THAT(entries->at(0).values, ElementsAre("x \"y\" # no comment"));
  EXPECT_THAT(entries->at(1).values, ElementsAre("C:\\x"));
  EXPECT_THAT(entries->at(2).values, ElementsAre("-12"));
  EXPECT_EQ(entries->at(2).section, "");
  EXPECT_EQ(entries->at(3).section, "section");
  EXPECT_EQ(entries->at(3).line, 6);
  EXPECT_THAT(entries->at(4).values, ElementsAre("p", "q", "3"));
  EXPECT_TRUE(entries->at(5).values.empty());
  EXPECT_THAT(parse_config_text("t = 0.25", "f.toml")->front().values, ElementsAre("0.25"));
}

TEST(ParseConfigText, Arrays_GoOnOverLines) {
  const auto entries = parse_config_text(
      "\xEF\xBB\xBF[\"a name\"]\r\na = [ # first\r\n  1_024,\r\n\r\n  2 # two\n]\n'b' = 3\n",
      "f.toml");
  ASSERT_TRUE(entries) << entries.error().text();
  ASSERT_EQ(entries->size(), 2);
  EXPECT_EQ(entries->at(0).section, "a name");
  EXPECT_THAT(entries->at(0).values, ElementsAre("1024", "2"));
  EXPECT_EQ(entries->at(0).line, 2);
  EXPECT_EQ(entries->at(1).key, "b");
  EXPECT_EQ(entries->at(1).line, 7);
}

TEST(ParseConfigText, BrokenLines_CarryLineAndColumn) {
  const auto place_of = [](std::string_view text) {
    const auto entries = parse_config_text(text, "f.toml");
    return entries ? "accepted" : entries.error().where;
  };
  EXPECT_EQ(place_of("a = 1\nb\n"), "2:2");
  EXPECT_EQ(place_of("a = \"x"), "1:7");
  EXPECT_EQ(place_of("a = bare"), "1:5");
  EXPECT_EQ(place_of("a = 1 2"), "1:7");
  EXPECT_EQ(place_of("a = [1 2]"), "1:8");
  EXPECT_EQ(place_of("[x\n"), "1:3");
  EXPECT_EQ(place_of("a = 1.5.2"), "1:5");
  EXPECT_EQ(place_of("a = .5"), "1:5");
  EXPECT_EQ(place_of("a = 1."), "1:5");
  EXPECT_EQ(place_of("a = \"\\q\""), "1:7");
  EXPECT_EQ(place_of("a = \"x\nb = \"y\""), "1:7");
  EXPECT_EQ(place_of("a = 'x\r\nb = 'y'"), "1:7");
  EXPECT_EQ(place_of("a = [1,\n2\nb = 3"), "3:1");
  EXPECT_EQ(place_of("a = [1,\n"), "2:1");
  EXPECT_EQ(place_of("a = 1__0"), "1:5");
  EXPECT_EQ(place_of("a = 1_"), "1:5");
  EXPECT_EQ(place_of("a = _1"), "1:5");
  EXPECT_EQ(place_of("a = 1\rb = 2"), "1:6");
}

}  // namespace
}  // namespace kernelpath::cli
