#include "features/value.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

namespace kernelpath::features {

std::string_view value_type_name(ValueType type) {
  constexpr std::array<std::string_view, 7> kNames = {"null",   "bool", "integer", "number",
                                                      "string", "list", "object"};
  return kNames[static_cast<std::size_t>(type)];
}

bool operator==(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (a.type_ == b.type_ && a.type_ == ValueType::kInteger) {
      return a.payload_.integer == b.payload_.integer;
    }
    return a.as_double() == b.as_double();
  }
  if (a.type_ != b.type_) return false;
  switch (a.type_) {
    case ValueType::kNull:
      return true;
    case ValueType::kBool:
      return a.payload_.boolean == b.payload_.boolean;
    case ValueType::kString: {
      const Text* x = a.payload_.text;
      const Text* y = b.payload_.text;
      return x == y || (x->hash == y->hash && x->text == y->text);
    }
    case ValueType::kList:
      return a.payload_.list->items == b.payload_.list->items;
    default:
      return false;
  }
}

const Text* Arena::text(std::string_view text) {
  const auto add = [this](std::string content) {
    texts_.push_back({.text = std::move(content)});
    Text& added = texts_.back();
    added.hash = std::hash<std::string>{}(added.text);
    added.upper = &added;
    added.lower = &added;
    return &added;
  };
  Text* const made = add(std::string(text));
  const std::string upper = to_upper(text);
  const std::string lower = to_lower(text);
  Text* const upper_text = upper == text ? made : add(upper);
  Text* const lower_text = lower == text ? made : add(lower);
  for (Text* form : {made, upper_text, lower_text}) {
    form->upper = upper_text;
    form->lower = lower_text;
  }
  return made;
}

Value Arena::string(std::string_view text) { return Value::string(this->text(text)); }

Value Arena::list(std::vector<Value> items) {
  lists_.push_back({.items = std::move(items)});
  return Value::list(&lists_.back());
}

Value Arena::from_json(const json::Value& value) {
  switch (value.type()) {
    case json::Type::kNull:
      return {};
    case json::Type::kBool:
      return Value::boolean(value.as_bool());
    case json::Type::kInteger:
      return Value::integer(value.as_integer());
    case json::Type::kBigInteger:
    case json::Type::kDouble:
      return Value::number(value.as_double());
    case json::Type::kString:
      return string(value.as_string());
    case json::Type::kArray: {
      std::vector<Value> items;
      for (const json::Value& item : value.items()) items.push_back(from_json(item));
      return list(std::move(items));
    }
    case json::Type::kObject:
      return Value::object(static_cast<std::int64_t>(value.members().size()));
  }
  return {};
}

namespace {

std::string number_source(double number) {
  // Shortest form that reads back alike, and that still reads as a number with a fraction.
  std::string text = fmt::format("{}", number);
  if (std::isfinite(number) && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        out += c;
    }
  }
  return out + '"';
}

std::string list_text(const List& list, std::string (*item_text)(const Value&)) {
  std::string out = "[";
  for (const Value& item : list.items) {
    if (out.size() > 1) out += ", ";
    out += item_text(item);
  }
  return out + "]";
}

}  // namespace

std::string to_source(const Value& value) {
  switch (value.type()) {
    case ValueType::kNull:
      return "null";
    case ValueType::kBool:
      return value.as_bool() ? "true" : "false";
    case ValueType::kInteger:
      return fmt::format("{}", value.as_integer());
    case ValueType::kDouble:
      return number_source(value.as_double());
    case ValueType::kString:
      return quoted(value.as_text().text);
    case ValueType::kList:
      return list_text(value.as_list(), to_source);
    case ValueType::kObject:
      return "{…}";
  }
  return {};
}

std::string to_display(const Value& value) {
  if (value.type() == ValueType::kString && !trim(value.as_text().text).empty()) {
    return value.as_text().text;
  }
  return value.type() == ValueType::kDouble ? fmt::format("{}", value.as_double())
                                            : to_source(value);
}

json::Value to_json(const Value& value) {
  switch (value.type()) {
    case ValueType::kNull:
      return json::Value::null();
    case ValueType::kBool:
      return json::Value::boolean(value.as_bool());
    case ValueType::kInteger:
      return json::Value::integer(value.as_integer());
    case ValueType::kDouble:
      return json::Value::number(value.as_double());
    case ValueType::kString:
      return json::Value::string(value.as_text().text);
    case ValueType::kList: {
      std::vector<json::Value> items;
      for (const Value& item : value.as_list().items) items.push_back(to_json(item));
      return json::Value::array(std::move(items));
    }
    case ValueType::kObject:
      return json::Value::object({});
  }
  return {};
}

}  // namespace kernelpath::features
