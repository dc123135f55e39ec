// Properties: what is written reads back as the same tree, and the two readers (simdjson's walk and
// the fault finder) accept the same texts.
#include "json/document.h"
#include "json/fault.h"
#include "json/writer.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

namespace kernelpath::json {
namespace {

rc::Gen<std::string> any_text() {
  return rc::gen::container<std::string>(rc::gen::oneOf(
      rc::gen::inRange<char>(' ', '\x7f'), rc::gen::element('"', '\\', '\n', '\0', '\x1b', '/')));
}

rc::Gen<Value> any_scalar() {
  return rc::gen::oneOf(
      rc::gen::just(Value::null()), rc::gen::map(rc::gen::arbitrary<bool>(), &Value::boolean),
      rc::gen::map(rc::gen::arbitrary<std::int64_t>(), &Value::integer),
      rc::gen::map(rc::gen::arbitrary<double>(),
                   [](double x) { return Value::number(std::isfinite(x) ? x : 0.5); }),
      rc::gen::map(any_text(), &Value::string));
}

rc::Gen<Value> any_value(int depth) {
  if (depth == 0) return any_scalar();
  const auto list =
      rc::gen::map(rc::gen::container<std::vector<Value>>(any_value(depth - 1)), &Value::array);
  const auto object = rc::gen::map(
      rc::gen::container<std::map<std::string, Value>>(any_text(), any_value(depth - 1)),
      [](const std::map<std::string, Value>& entries) {
        std::vector<Member> members;
        for (const auto& [key, value] : entries) members.push_back({key, value});
        return Value::object(std::move(members));
      });
  return rc::gen::oneOf(any_scalar(), list, object);
}

RC_GTEST_PROP(RoundTrip, WrittenTree_ReadsBackEqual, ()) {
  const Value value = *rc::gen::resize(12, any_value(3));
  const int indent = *rc::gen::element(0, 2);
  const auto document = parse(to_text(value, indent), "x");
  RC_ASSERT(document.has_value());
  RC_ASSERT(document->root == value);
  RC_ASSERT(document->warnings.empty());
}

// Texts of JSON's own pieces in any order: most are broken, in every way.
RC_GTEST_PROP(TwoReaders, AnyPieces_AreJudgedAlike, ()) {
  const auto piece = rc::gen::element<std::string>(
      "{", "}", "[", "]", ",", ":", "\"a\"", "\"\\u0041\"", "\"\\ud800\"", "\"\\q\"", "1", "-0.5e3",
      "01", "true", "nul", "NaN", "-Infinity", " ", "\n", "\"", "\xc3\xa9", "\xe9", "x", "\\",
      "\f");
  std::string text;
  for (const std::string& each : *rc::gen::container<std::vector<std::string>>(piece)) text += each;
  RC_PRE(text.find_first_not_of(" \n") != std::string::npos);
  const bool accepted = parse(text, "x").has_value();
  RC_ASSERT(accepted == !find_fault(text, Limits{}).has_value());
}

RC_GTEST_PROP(TwoReaders, GoodTextWithOneByteChanged_IsJudgedAlike, ()) {
  std::string text = to_text(*rc::gen::resize(8, any_value(3)), 0);
  const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
  text[at] = *rc::gen::arbitrary<char>();
  RC_PRE(text.find_first_not_of(" \t\r\n") != std::string::npos);
  const auto document = parse(text, "x");
  if (!document && document.error().where.empty()) return;  // UTF-16, a pointer …
  RC_ASSERT(document.has_value() == !find_fault(text, Limits{}).has_value());
}

}  // namespace
}  // namespace kernelpath::json
