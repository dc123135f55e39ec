#include "parse_helpers.h"

#include <cmath>

namespace kernelpath::json {
namespace {

TEST(ValueEquality, NumbersOfTwoTypes_CompareByValue) {
  EXPECT_EQ(Value::integer(1), Value::number(1.0));
  EXPECT_FALSE(Value::integer(1) == Value::number(1.5));
  EXPECT_EQ(Value::integer(0), Value::number(-0.0));
  EXPECT_FALSE(Value::number(NAN) == Value::number(NAN));
  EXPECT_FALSE(Value::integer(INT64_MAX) == Value::number(9223372036854775808.0));
  EXPECT_EQ(good("18446744073709551616").root, good("18446744073709551616.0").root);
  EXPECT_FALSE(good("18446744073709551617").root == good("18446744073709551616.0").root);
  EXPECT_FALSE(good("18446744073709551617").root == Value::integer(1));
}

TEST(ValueEquality, OtherTypes_Differ) {
  EXPECT_FALSE(Value::boolean(true) == Value::integer(1));
  EXPECT_FALSE(Value::string("1") == Value::integer(1));
  EXPECT_FALSE(Value::null() == Value::boolean(false));
  EXPECT_EQ(Value::null(), Value());
}

TEST(ValueEquality, Objects_IgnoreOrder) {
  EXPECT_EQ(good(R"({"a": 1, "b": [1, {"c": 2}]})").root,
            good(R"({"b": [1, {"c": 2.0}], "a": 1})").root);
  EXPECT_FALSE(good(R"({"a": 1})").root == good(R"({"b": 1})").root);
  EXPECT_FALSE(good(R"({"a": 1})").root == good(R"({"a": 1, "b": 1})").root);
  EXPECT_FALSE(good("[1, 2]").root == good("[2, 1]").root);
  EXPECT_FALSE(good("[1]").root == good("[1, 1]").root);
}

TEST(ValueFind, MissesAndNulls_GiveNothing) {
  const Document document = good(R"({"a": null, "b": 1})");
  EXPECT_EQ(document.root.find("x"), nullptr);
  ASSERT_NE(document.root.find("a"), nullptr);
  EXPECT_EQ(document.root.find_non_null("a"), nullptr);
  EXPECT_NE(document.root.find_non_null("b"), nullptr);
  EXPECT_EQ(Value::integer(1).find("a"), nullptr);
}

TEST(ValueBrief, LongValues_AreCut) {
  EXPECT_EQ(good(R"({"a": [1, "x", null, true, 1.5]})").root.brief(),
            R"({"a": [1, "x", null, true, 1.5]})");
  EXPECT_EQ(Value::string(std::string(1000, 'x')).brief(10), "\"xxxxxx…");
  EXPECT_LE(Value::string(std::string(1000, 'x')).brief(40).size(), 40U);
  EXPECT_EQ(Value::string("\x1b[2J").brief(), "\"\\u001b[2J\"");
  const Value list = Value::array(std::vector<Value>(1'000'000, Value::integer(7)));
  EXPECT_LE(list.brief(40).size(), 40U);
  EXPECT_EQ(good("1000000000000000019884624838656").root.brief(),
            "1000000000000000019884624838656");
}

TEST(Value, Copies_ShareWhatNeverChanges) {
  const Document document = good(R"({"a": ["x"]})");
  const Value copy = *document.root.find("a");
  EXPECT_EQ(copy.items().data(), document.root.find("a")->items().data());
  EXPECT_LE(sizeof(Value), 32U);
}

TEST(ValueDeathTest, WrongType_IsABugOfTheCaller) {
  EXPECT_EXIT((void)Value::integer(1).as_string(), testing::ExitedWithCode(70), "is_string");
  EXPECT_EXIT((void)Value::string("1").as_double(), testing::ExitedWithCode(70), "is_number");
}

}  // namespace
}  // namespace kernelpath::json
