#pragma once

#include "json/value.h"

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::features {

// A string with its upper- and lower-case forms, so that upper() and lower() in a rule cost nothing
// when thousands of combinations are judged.
struct Text {
  std::string text = {};
  const Text* upper = nullptr;  // itself where nothing changes
  const Text* lower = nullptr;
  std::size_t hash = 0;
};

struct List;

enum class ValueType : std::uint8_t { kNull, kBool, kInteger, kDouble, kString, kList, kObject };
std::string_view value_type_name(ValueType type);

// What an expression computes with: small, trivially copyable; strings and lists live in an Arena
// that must outlive it. Of an object only the number of its members is kept: its members are fields
// of their own.
class Value {
 public:
  constexpr Value() = default;  // null
  static constexpr Value boolean(bool value);
  static constexpr Value integer(std::int64_t value);
  static constexpr Value number(double value);
  static constexpr Value string(const Text* text);
  static constexpr Value list(const List* list);
  static constexpr Value object(std::int64_t num_members);

  [[nodiscard]] ValueType type() const { return type_; }
  [[nodiscard]] bool is_null() const { return type_ == ValueType::kNull; }
  [[nodiscard]] bool is_number() const {
    return type_ == ValueType::kInteger || type_ == ValueType::kDouble;
  }
  // True only for the boolean true: what `when` asks for.
  [[nodiscard]] bool is_true() const { return type_ == ValueType::kBool && payload_.boolean; }

  // Unchecked: the caller has looked at type().
  [[nodiscard]] bool as_bool() const { return payload_.boolean; }
  [[nodiscard]] std::int64_t as_integer() const { return payload_.integer; }
  [[nodiscard]] const Text& as_text() const { return *payload_.text; }
  [[nodiscard]] const List& as_list() const { return *payload_.list; }
  // Of any number.
  [[nodiscard]] double as_double() const {
    return type_ == ValueType::kInteger ? static_cast<double>(payload_.integer) : payload_.number;
  }

  // Numbers by value (1 == 1.0); a boolean equals no number; lists element by element; two objects
  // are never equal, for their members are not kept.
  friend bool operator==(const Value& a, const Value& b);

 private:
  union Payload {
    std::int64_t integer = 0;
    bool boolean;
    double number;
    const Text* text;
    const List* list;
  };
  ValueType type_ = ValueType::kNull;
  Payload payload_;
};

struct List {
  std::vector<Value> items = {};
};

constexpr Value Value::boolean(bool value) {
  Value out;
  out.type_ = ValueType::kBool;
  out.payload_.boolean = value;
  return out;
}
constexpr Value Value::integer(std::int64_t value) {
  Value out;
  out.type_ = ValueType::kInteger;
  out.payload_.integer = value;
  return out;
}
constexpr Value Value::number(double value) {
  Value out;
  out.type_ = ValueType::kDouble;
  out.payload_.number = value;
  return out;
}
constexpr Value Value::string(const Text* text) {
  Value out;
  out.type_ = ValueType::kString;
  out.payload_.text = text;
  return out;
}
constexpr Value Value::list(const List* list) {
  Value out;
  out.type_ = ValueType::kList;
  out.payload_.list = list;
  return out;
}
constexpr Value Value::object(std::int64_t num_members) {
  Value out;
  out.type_ = ValueType::kObject;
  out.payload_.integer = num_members;
  return out;
}

// Owns the texts and lists that values point to; addresses stay valid for its whole life.
class Arena {
 public:
  Value string(std::string_view text);
  Value list(std::vector<Value> items);
  // A whole JSON value; integers beyond 64 bits become doubles, as Python would compare them.
  Value from_json(const json::Value& value);

 private:
  const Text* text(std::string_view text);

  std::deque<Text> texts_;
  std::deque<List> lists_;
};

// As it stands in an expression: strings quoted, lists in brackets. Objects print as "{…}".
std::string to_source(const Value& value);
// As a message shows it: strings bare unless empty.
std::string to_display(const Value& value);
// Objects become {}: only their number of members is known.
json::Value to_json(const Value& value);

}  // namespace kernelpath::features
