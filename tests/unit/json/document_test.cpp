// What Python's reader accepts beyond strict JSON, and looking things up in a document.
#include "parse_helpers.h"

#include <cmath>

namespace kernelpath::json {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Parse, OrdinaryDocument_KeepsOrderTypesAndOffsets) {
  const Document document =
      good(R"({"b": [1, -2.5, "x"], "a": {"t": true, "f": false, "n": null}})");
  ASSERT_TRUE(document.root.is_object());
  EXPECT_EQ(document.root.members()[0].key, "b");
  EXPECT_EQ(document.root.members()[1].key, "a");
  const Value* const list = document.root.find("b");
  EXPECT_EQ(list->items()[0].as_integer(), 1);
  EXPECT_EQ(list->items()[1].as_double(), -2.5);
  EXPECT_EQ(list->items()[2].as_string(), "x");
  EXPECT_TRUE(resolve_pointer(document.root, "/a/t")->as_bool());
  EXPECT_TRUE(resolve_pointer(document.root, "/a/n")->is_null());
  EXPECT_EQ(list->offset(), 6U);
  EXPECT_EQ(list->items()[1].offset(), 10U);
  EXPECT_EQ(document.root.members()[1].key_offset, 22U);
  EXPECT_THAT(document.warnings, IsEmpty());
}

TEST(Parse, EmptyContainersAndStrings_AreRead) {
  const Document document = good(R"({"a": {}, "b": [], "c": "", "": [[]]})");
  EXPECT_TRUE(document.root.find("a")->members().empty());
  EXPECT_TRUE(document.root.find("b")->items().empty());
  EXPECT_EQ(document.root.find("c")->as_string(), "");
  EXPECT_EQ(document.root.find("")->items().size(), 1U);
}

TEST(Parse, NonFiniteLiterals_AreNumbersWithAWarning) {
  const Document document = good(R"({"a": NaN, "b": [0.0, Infinity], "c":-Infinity})");
  EXPECT_TRUE(std::isnan(document.root.find("a")->as_double()));
  EXPECT_EQ(resolve_pointer(document.root, "/b/1")->as_double(), INFINITY);
  EXPECT_EQ(document.root.find("c")->as_double(), -INFINITY);
  EXPECT_EQ(document.root.find("c")->number_text(), "-Infinity");
  ASSERT_THAT(codes(document), ElementsAre("JSON-NONFINITE", "JSON-NONFINITE", "JSON-NONFINITE"));
  EXPECT_EQ(document.warnings[1].where, "/b/1");
  EXPECT_THAT(document.warnings[1].message, HasSubstr("Infinity"));
}

TEST(Parse, NonFiniteLiteralsAtTheTop_AreRead) {
  EXPECT_EQ(good(" Infinity ").root.as_double(), INFINITY);
  EXPECT_TRUE(std::isnan(good("NaN").root.as_double()));
}

TEST(Parse, NonFiniteWordsInStrings_AreText) {
  const Document document = good(R"({"NaN": "Infinity", "a": ["-Infinity, NaN"]})");
  EXPECT_EQ(document.root.find("NaN")->as_string(), "Infinity");
  EXPECT_THAT(document.warnings, IsEmpty());
}

TEST(Parse, FloatObject_IsTheNumberWithoutAWarning) {
  const Document document = good(
      R"({"time_step_limit": [0.0, {"__float__": "Infinity"}], "b": {"__float__": "-Infinity"},
          "c": {"__float__": "NaN"}})");
  const Value* const limit = resolve_pointer(document.root, "/time_step_limit/1");
  ASSERT_EQ(limit->type(), Type::kDouble);
  EXPECT_EQ(limit->as_double(), INFINITY);
  EXPECT_EQ(document.text[limit->offset()], '{');
  EXPECT_EQ(document.root.find("b")->as_double(), -INFINITY);
  EXPECT_TRUE(std::isnan(document.root.find("c")->as_double()));
  EXPECT_THAT(document.warnings, IsEmpty());
}

TEST(Parse, ObjectThatOnlyLooksLikeAFloat_StaysAnObject) {
  for (const char* text : {R"({"__float__": "1.0"})", R"({"__float__": 1})",
                           R"({"__float__": null})", R"({"__float__": "Infinity", "a": 1})",
                           R"({"float": "Infinity"})", R"({"__float__": "infinity"})"}) {
    EXPECT_TRUE(good(text).root.is_object()) << text;
  }
}

TEST(Parse, NumberBeyondDoubles_IsInfiniteWithAWarning) {
  const Document document = good(R"({"a": 1e999, "b": -1e999, "c": 1e-999})");
  EXPECT_EQ(document.root.find("a")->as_double(), INFINITY);
  EXPECT_EQ(document.root.find("a")->number_text(), "1e999");
  EXPECT_EQ(document.root.find("b")->as_double(), -INFINITY);
  EXPECT_EQ(document.root.find("c")->as_double(), 0.0);
  EXPECT_THAT(codes(document), ElementsAre("JSON-NONFINITE", "JSON-NONFINITE"));
}

TEST(Parse, IntegerBeyond64Bits_KeepsItsSpelling) {
  const Document document =
      good(R"({"max": 1000000000000000019884624838656, "u": 18446744073709551615,
      "top": 9223372036854775807, "low": -9223372036854775808, "lower": -9223372036854775809})");
  const Value* const max = document.root.find("max");
  EXPECT_EQ(max->type(), Type::kBigInteger);
  EXPECT_FALSE(max->is_integer());
  EXPECT_EQ(max->number_text(), "1000000000000000019884624838656");
  EXPECT_EQ(max->as_double(), 1e30);
  EXPECT_EQ(document.root.find("u")->type(), Type::kBigInteger);
  EXPECT_EQ(document.root.find("top")->as_integer(), INT64_MAX);
  EXPECT_EQ(document.root.find("low")->as_integer(), INT64_MIN);
  EXPECT_EQ(document.root.find("lower")->type(), Type::kBigInteger);
}

TEST(Parse, RepeatedKey_LastValueCountsAndBothAreNamed) {
  const Document document =
      good(R"({"a": {"num_hidden_layers": 32, "x": 1, "num_hidden_layers": 1}})");
  const Value* const inner = document.root.find("a");
  EXPECT_EQ(inner->find("num_hidden_layers")->as_integer(), 1);
  ASSERT_EQ(inner->members().size(), 2U);
  EXPECT_EQ(inner->members()[0].key, "num_hidden_layers");
  ASSERT_THAT(codes(document), ElementsAre("JSON-DUPLICATE-KEY"));
  EXPECT_EQ(document.warnings[0].where, "/a/num_hidden_layers");
  EXPECT_EQ(document.warnings[0].message,
            "the key \"num_hidden_layers\" is repeated: 32 first, then 1; the last one counts");
}

TEST(Parse, RepeatedKeyWithEqualValues_IsStillWarnedOf) {
  const Document document = good(R"({"a": 1, "a": 1})");
  ASSERT_THAT(codes(document), ElementsAre("JSON-DUPLICATE-KEY"));
  EXPECT_THAT(document.warnings[0].message, HasSubstr("the values are equal"));
}

TEST(Parse, KeyRepeatedThroughEscapes_IsTheSameKey) {
  const Document document = good(R"({"num_hidden_layers": 32, "num_\u0068idden_layers": 1})");
  EXPECT_EQ(document.root.find("num_hidden_layers")->as_integer(), 1);
  EXPECT_THAT(codes(document), ElementsAre("JSON-DUPLICATE-KEY"));
}

TEST(Parse, KeyRepeatedAmongMany_IsFound) {
  std::string text = "{";
  for (int i = 0; i < 100; ++i) text += "\"k" + std::to_string(i) + "\": 0, ";
  const Document document = good(text + "\"k7\": 1, \"k7\": 2}");
  EXPECT_EQ(document.root.members().size(), 100U);
  EXPECT_EQ(document.root.members()[7].value.as_integer(), 2);
  EXPECT_THAT(codes(document), ElementsAre("JSON-DUPLICATE-KEY", "JSON-DUPLICATE-KEY"));
}

TEST(Parse, ThousandsOfWarnings_AreCutOffAndCounted) {
  std::string text = "{\"a\": 0";
  for (int i = 0; i < 1000; ++i) text += ", \"a\": 1";
  const Document document = good(text + "}");
  ASSERT_EQ(document.warnings.size(), 101U);
  EXPECT_EQ(document.warnings.back().code, "JSON-MORE-WARNINGS");
  EXPECT_THAT(document.warnings.back().message, HasSubstr("900 more"));
}

TEST(ResolvePointer, EscapesIndexesAndMisses_FollowRfc6901) {
  const Document document = good(R"({"a/b": [10, {"~": 2}], "": 3, "0": 4})");
  const auto at = [&](std::string_view pointer) { return resolve_pointer(document.root, pointer); };
  EXPECT_EQ(at(""), &document.root);
  EXPECT_EQ(at("/a~1b/0")->as_integer(), 10);
  EXPECT_EQ(at("/a~1b/1/~0")->as_integer(), 2);
  EXPECT_EQ(at("/")->as_integer(), 3);
  EXPECT_EQ(at("/0")->as_integer(), 4);
  for (const char* miss :
       {"/a~1b/2", "/a~1b/00", "/a~1b/-", "/a~1b/1x", "/x", "/0/0", "0", "/a~1b/"}) {
    EXPECT_EQ(at(miss), nullptr) << miss;
  }
  EXPECT_EQ(pointer_token("a/b~c"), "a~1b~0c");
}

TEST(Position, Offsets_CountFromOne) {
  EXPECT_EQ(position_in("ab\ncd", 0).line, 1U);
  EXPECT_EQ(position_in("ab\ncd", 2).column, 3U);
  EXPECT_EQ(position_in("ab\ncd", 3).line, 2U);
  EXPECT_EQ(position_in("ab\ncd", 4).column, 2U);
}

}  // namespace
}  // namespace kernelpath::json
