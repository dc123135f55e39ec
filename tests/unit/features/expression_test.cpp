#include "features/expression.h"

#include "features/context.h"
#include "json/document.h"

#include <gmock/gmock.h>

#include <string>

namespace kernelpath::features {
namespace {

json::Value object(const std::string& text) { return json::parse_object(text, "test")->root; }

// A small table of its own: the language must not depend on an engine's fields.
class Expressions : public testing::Test {
 protected:
  void SetUp() override {
    add("name", FieldType::kString);
    add("other", FieldType::kString);
    add("size", FieldType::kInteger);
    add("share", FieldType::kNumber);
    add("on", FieldType::kBool);
    add("windows", FieldType::kList);
    add("object", FieldType::kObject);
    add("object.member", FieldType::kAny);
    FieldInfo with_default{.name = "limit", .type = FieldType::kInteger};
    with_default.default_value = Value::integer(32);
    ASSERT_TRUE(table_.schema.add(with_default));
  }

  void add(const std::string& name, FieldType type) {
    ASSERT_TRUE(table_.schema.add({.name = name, .type = type}));
  }

  Value value(const std::string& source, const std::string& arguments = "{}") {
    const auto parsed = parse_expression(source, table_.schema, table_.arena);
    EXPECT_TRUE(parsed.has_value()) << source << ": " << parsed.error().text();
    if (!parsed) return {};
    Context context(table_);
    EXPECT_TRUE(context.state(object(arguments)).empty()) << arguments;
    return evaluate(*parsed, context.slots());
  }

  bool holds(const std::string& source, const std::string& arguments = "{}") {
    return value(source, arguments).is_true();
  }

  std::string error(const std::string& source) {
    const auto parsed = parse_expression(source, table_.schema, table_.arena);
    return parsed ? "no error" : parsed.error().text();
  }

  std::string printed(const std::string& source) {
    const auto parsed = parse_expression(source, table_.schema, table_.arena);
    return parsed ? print(*parsed, table_.schema) : parsed.error().text();
  }

  RuleTable table_;
};

TEST_F(Expressions, Numbers_CompareByValue) {
  EXPECT_TRUE(holds("1 == 1.0"));
  EXPECT_TRUE(holds("9007199254740993 > 9007199254740992"));
  EXPECT_TRUE(holds("size >= 2", R"({"size": 2})"));
  EXPECT_FALSE(holds("size > 2", R"({"size": 2})"));
  EXPECT_FALSE(holds("object.member == 1", R"({"object": {"member": true}})"));
}

TEST_F(Expressions, UnstatedField_ReadsAsItsDefaultElseNull) {
  EXPECT_TRUE(holds("limit == 32"));
  EXPECT_TRUE(holds("name == null"));
  EXPECT_FALSE(holds("has(limit)"));
  EXPECT_TRUE(holds("has(limit) and limit == null", R"({"limit": null})"));
}

TEST_F(Expressions, Null_HasNoOrderAndIsNotTrue) {
  EXPECT_FALSE(holds("size < 1"));
  EXPECT_FALSE(holds("size >= 1"));
  EXPECT_FALSE(holds("on"));
  EXPECT_TRUE(holds("not on"));
  EXPECT_TRUE(holds("size != 3"));
  EXPECT_TRUE(value("size + 1").is_null());
}

TEST_F(Expressions, Arithmetic_IsPythons) {
  EXPECT_TRUE(holds("-7 // 2 == -4 and -7 % 2 == 1 and 7 % -2 == -1"));
  EXPECT_TRUE(holds("7 / 2 == 3.5 and 2 + 3 * 4 == 14 and (2 + 3) * 4 == 20"));
  EXPECT_TRUE(value("1 / 0").is_null());
  EXPECT_TRUE(value("1 % 0").is_null());
  EXPECT_TRUE(value("9223372036854775807 + 1").is_null());
}

TEST_F(Expressions, Strings_CompareByCaseUnlessAsked) {
  EXPECT_FALSE(holds("name == \"TRTLLM\"", R"({"name": "trtllm"})"));
  EXPECT_TRUE(holds("upper(name) == \"TRTLLM\"", R"({"name": "trtllm"})"));
  EXPECT_TRUE(holds("lower(name) != name", R"({"name": "Fp8"})"));
  EXPECT_TRUE(holds("blank(name)", R"({"name": " \t"})"));
  EXPECT_TRUE(holds("starts_with(name, \"fp8\")", R"({"name": "fp8_e4m3"})"));
}

TEST_F(Expressions, Lists_AreSearchedSummedAndQuantified) {
  const std::string windows = R"({"windows": [4096, 512, 0]})";
  EXPECT_TRUE(holds("512 in windows and 1 not in windows", windows));
  EXPECT_TRUE(holds("any(w : windows, w <= 0)", windows));
  EXPECT_FALSE(holds("all(w : windows, w > 0)", windows));
  EXPECT_TRUE(holds("sum(windows) == 4608 and len(windows) == 3", windows));
  EXPECT_TRUE(holds("any(a : windows, any(b : windows, a + b == 4608))", windows));
  EXPECT_TRUE(holds("same_set(windows, [0, 512, 512, 4096])", windows));
  EXPECT_FALSE(holds("any(w : windows, true)"));
  EXPECT_TRUE(value("len(windows)").is_null());
}

TEST_F(Expressions, OtherFunctions_DoWhatTheirTableSays) {
  EXPECT_TRUE(holds("type_of(object.member) == \"bool\"", R"({"object": {"member": false}})"));
  EXPECT_TRUE(holds("len(object) == 2", R"({"object": {"a": 1, "b": 2}})"));
  EXPECT_TRUE(holds("choose(on, 1, 2) == 2 and min(3, 1, 2) == 1 and max(3, 1.5) == 3"));
  EXPECT_TRUE(holds("abs(-2.5) == 2.5 and ceil(2.1) == 3"));
  EXPECT_TRUE(value("min(1, size)").is_null());
}

TEST_F(Expressions, Precedence_PrintsOnlyNeededParentheses) {
  EXPECT_EQ(printed("(on and on) or not (on)"), "on and on or not on");
  EXPECT_EQ(printed("on and (on or on)"), "on and (on or on)");
  EXPECT_EQ(printed("not (size == 1 and on)"), "not (size == 1 and on)");
  EXPECT_EQ(printed("size-(limit - -(1))"), "size - (limit - -1)");
  EXPECT_EQ(printed("not  name in [ \"a\",\"b\" ]"), "not name in [\"a\", \"b\"]");
  EXPECT_EQ(printed("name not in [null, 1.0, -2, true]"), "name not in [null, 1.0, -2, true]");
  EXPECT_EQ(printed("any( w:windows,w>0 )"), "any(w : windows, w > 0)");
}

TEST_F(Expressions, Errors_NameThePlaceAndTheCause) {
  EXPECT_THAT(error("size =="), testing::HasSubstr("ends too early"));
  EXPECT_THAT(error("size == 1 == 1"), testing::HasSubstr("do not chain"));
  EXPECT_THAT(error("naem == \"a\""), testing::HasSubstr("no field is called 'naem'"));
  EXPECT_THAT(error("name < 1"), testing::HasSubstr("offset 5"));
  EXPECT_THAT(error("name == 1"), testing::HasSubstr("cannot take a number"));
  EXPECT_THAT(error("size and on"), testing::HasSubstr("cannot take a number"));
  EXPECT_THAT(error("upper(size)"), testing::HasSubstr("'upper' cannot take"));
  EXPECT_THAT(error("upper()"), testing::HasSubstr("takes 1 to 1 arguments"));
  EXPECT_THAT(error("has(1)"), testing::HasSubstr("asks for a field"));
  EXPECT_THAT(error("[size]"), testing::HasSubstr("constants only"));
  EXPECT_THAT(error("\"a"), testing::HasSubstr("closing quote"));
  EXPECT_THAT(error("size ! 1"), testing::HasSubstr("unexpected character '!'"));
  EXPECT_THAT(error("(on"), testing::HasSubstr("expected ')'"));
  EXPECT_THAT(error(std::string(60, '(')), testing::HasSubstr("nested too deeply"));
}

TEST_F(Expressions, UnknownField_OffersNearNames) {
  const auto parsed = parse_expression("windws == null", table_.schema, table_.arena);
  ASSERT_FALSE(parsed.has_value());
  EXPECT_THAT(parsed.error().near_matches, testing::Contains("windows"));
}

TEST_F(Expressions, Condition_MustBeABoolean) {
  EXPECT_FALSE(parse_condition("size + 1", table_.schema, table_.arena).has_value());
  EXPECT_TRUE(parse_condition("size + 1 > 2", table_.schema, table_.arena).has_value());
}

TEST_F(Expressions, Fields_AreThoseRead) {
  const auto parsed = parse_expression("limit > size and size > 0", table_.schema, table_.arena);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_THAT(parsed->fields(), testing::ElementsAre(2U, 8U));
}

}  // namespace
}  // namespace kernelpath::features
