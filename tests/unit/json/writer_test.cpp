#include "json/writer.h"

#include "parse_helpers.h"

#include <cmath>

namespace kernelpath::json {
namespace {

TEST(Writer, Calls_KeepTheirOrder) {
  Writer writer;
  writer.begin_object()
      .member("kv_bytes", 131072)
      .key("layers")
      .begin_array()
      .value(1.0)
      .value("x")
      .value(true)
      .value(nullptr)
      .end_array()
      .key("empty")
      .begin_object()
      .end_object()
      .member("none", std::string_view())
      .end_object();
  EXPECT_EQ(writer.take(0),
            R"({"kv_bytes":131072,"layers":[1.0,"x",true,null],"empty":{},"none":""})");
}

TEST(Writer, Indent_SpreadsOverLines) {
  const Document document = good(R"({"a":[1,{"b":"x, {y}: \"[z]\""}],"c":[],"d":{}})");
  EXPECT_EQ(to_text(document.root, 2), R"({
  "a": [
    1,
    {
      "b": "x, {y}: \"[z]\""
    }
  ],
  "c": [],
  "d": {}
})");
}

TEST(Writer, Numbers_AreExactAndNonFiniteOnesNull) {
  EXPECT_EQ(to_text(good("[1000000000000000019884624838656, 1e30, -0, 1.0, 32.50]").root),
            "[1000000000000000019884624838656,1e+30,0,1.0,32.5]");
  EXPECT_EQ(to_text(Value::array({Value::number(NAN), Value::number(-INFINITY)})), "[null,null]");
  EXPECT_EQ(to_text(Value::integer(INT64_MIN)), "-9223372036854775808");
}

TEST(Writer, Strings_AreSafeForTerminalsAndAlwaysUtf8) {
  EXPECT_EQ(to_text(Value::string("\"\\\n\t\x1b[2J\x7f")), R"("\"\\\n\t\u001b[2J\u007f")");
  EXPECT_EQ(to_text(Value::string("caf\xc3\xa9 \xe2\x80\xae")), "\"café \\u202e\"");
  EXPECT_EQ(to_text(Value::string("a\xe9z\xf0\x9f")), "\"a\xef\xbf\xbdz\xef\xbf\xbd\xef\xbf\xbd\"");
}

TEST(Writer, AfterTake_StartsAnew) {
  Writer writer;
  EXPECT_EQ(writer.value(1).take(0), "1");
  EXPECT_EQ(writer.value(2).take(4), "2");
}

TEST(WriterDeathTest, Misuse_IsABugOfTheCaller) {
  const auto exits = testing::ExitedWithCode(70);
  EXPECT_EXIT(Writer().take(0), exits, "");
  EXPECT_EXIT(Writer().begin_object().take(0), exits, "");
  EXPECT_EXIT(Writer().begin_object().value(1), exits, "");
  EXPECT_EXIT(Writer().begin_array().key("a"), exits, "");
  EXPECT_EXIT(Writer().begin_array().end_object(), exits, "");
  EXPECT_EXIT(Writer().value(1).value(2), exits, "");
  EXPECT_EXIT(Writer().begin_object().key("a").key("b"), exits, "");
}

}  // namespace
}  // namespace kernelpath::json
