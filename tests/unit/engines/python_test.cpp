#include "engines/python.h"

#include "engines/sglang/launch.h"
#include "json/document.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace kernelpath::engines {
namespace {

std::string repr_of(const std::string& json) {
  const auto document = json::parse(json, "value");
  return document ? python_repr(document->root) : document.error().text();
}

TEST(PythonRepr, Texts_AreQuotedAsPythonDoes) {
  EXPECT_EQ(python_repr(std::string_view("fa3")), "'fa3'");
  EXPECT_EQ(python_repr(std::string_view("")), "''");
  EXPECT_EQ(python_repr(std::string_view("it's")), "\"it's\"");
  EXPECT_EQ(python_repr(std::string_view("it's \"x\"")), "'it\\'s \"x\"'");
  EXPECT_EQ(python_repr(std::string_view("a\tb\n\\")), "'a\\tb\\n\\\\'");
}

TEST(PythonRepr, Values_AreThoseOfItsJsonModule) {
  EXPECT_EQ(repr_of(R"({"a": [1, 2.5, "b", null, true, false, {}]})"),
            "{'a': [1, 2.5, 'b', None, True, False, {}]}");
}

TEST(PythonList, Names_AreQuoted) {
  const std::array<std::string, 2> names = {"fa3", "it's"};
  EXPECT_EQ(python_list(names), "['fa3', \"it's\"]");
  EXPECT_EQ(python_list({}), "[]");
}

TEST(PythonInteger, Missing_IsNone) {
  EXPECT_EQ(python_integer(64), "64");
  EXPECT_EQ(python_integer(std::nullopt), "None");
}

// An unset argument of SGLang is None, not an empty text.
TEST(SglangRepr, EmptyText_IsNone) {
  EXPECT_EQ(sglang::python_repr(""), "None");
  EXPECT_EQ(sglang::python_repr("it's"), "\"it's\"");
}

}  // namespace
}  // namespace kernelpath::engines
