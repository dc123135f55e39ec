#pragma once

#include "base/result.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::json {

class Value;

enum class Type : std::uint8_t {
  kNull,
  kBool,
  kInteger,
  kBigInteger,
  kDouble,
  kString,
  kArray,
  kObject
};

std::string_view type_name(Type type);

struct Member;

// One value of a parsed document, immutable once read. Objects keep the order of the file; where a
// key stands twice the last value counts, as in Python's reader, and the document carries a
// warning.
//
// Numbers: an integer that fits 64 signed bits is kInteger; a longer one is kBigInteger, whose
// spelling is kept by `number_text`; a number with a fraction or an exponent is kDouble, and so are
// NaN and ±Infinity, written bare or as {"__float__": "Infinity"}.
class Value {
 public:
  Value() = default;  // null

  [[nodiscard]] Type type() const { return type_; }
  [[nodiscard]] bool is_null() const { return type_ == Type::kNull; }
  [[nodiscard]] bool is_bool() const { return type_ == Type::kBool; }
  [[nodiscard]] bool is_integer() const { return type_ == Type::kInteger; }
  [[nodiscard]] bool is_number() const {
    return type_ == Type::kInteger || type_ == Type::kBigInteger || type_ == Type::kDouble;
  }
  [[nodiscard]] bool is_string() const { return type_ == Type::kString; }
  [[nodiscard]] bool is_array() const { return type_ == Type::kArray; }
  [[nodiscard]] bool is_object() const { return type_ == Type::kObject; }

  // Each of these asserts the type.
  [[nodiscard]] bool as_bool() const;
  [[nodiscard]] std::int64_t as_integer() const;
  [[nodiscard]] const std::string& as_string() const;
  [[nodiscard]] std::span<const Value> items() const;     // of an array
  [[nodiscard]] std::span<const Member> members() const;  // of an object, in file order

  // Any number as a double (an integer beyond 2^53 is rounded). Asserts is_number().
  [[nodiscard]] double as_double() const;
  // The spelling of a number in the file ("1e3", "-0", "Infinity").
  [[nodiscard]] std::string number_text() const;

  // The member called `key`, or null pointer if this is no object or has no such key.
  [[nodiscard]] const Value* find(std::string_view key) const;
  // The value, or null pointer where find() gives nothing or a JSON null.
  [[nodiscard]] const Value* find_non_null(std::string_view key) const;

  // Byte offset of the value's first character in Document::text; 0 for values built in memory.
  [[nodiscard]] std::uint32_t offset() const { return offset_; }
  // True where a string holds a lone surrogate escape ("\ud800"), which no UTF-8 can carry; such a
  // string reads with U+FFFD in its place.
  [[nodiscard]] bool has_lone_surrogate() const { return lone_surrogate_; }

  // A short JSON spelling for messages, at most `limit` bytes.
  [[nodiscard]] std::string brief(std::size_t limit = 40) const;

  // Equal as Python compares them: order of keys does not matter, 1 == 1.0.
  friend bool operator==(const Value& a, const Value& b);

  // Building values in memory (tests, batch answers, merged configurations).
  static Value null() { return {}; }
  static Value boolean(bool value);
  static Value integer(std::int64_t value);
  static Value number(double value);
  static Value string(std::string value);
  static Value array(std::vector<Value> items);
  static Value object(std::vector<Member> members);

 private:
  friend class Reader;

  union Number {
    std::int64_t integer;
    double real;
  };

  // 32 bytes, since a file may hold a million values. Shared because values never change.
  Type type_ = Type::kNull;
  bool bool_ = false;
  bool lone_surrogate_ = false;
  std::uint32_t offset_ = 0;
  Number number_ = {.integer = 0};  // `real` holds the rounded value of a kBigInteger, too
  // What the type says: std::string (a string, or a number not spelled as we would write it),
  // std::vector<Value> of an array, std::vector<Member> of an object. Empty ones may be null.
  std::shared_ptr<const void> data_;
};

struct Member {
  std::string key;
  Value value;
  std::uint32_t key_offset = 0;
};

}  // namespace kernelpath::json
