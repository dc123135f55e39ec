#pragma once

#include "base/result.h"
#include "config/family.h"
#include "config/model_config.h"
#include "json/value.h"

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::config {

// The names of one field, most specific first: "num_hidden_layers", "n_layer" … A slash leads into
// a nested object ("attn_config/kv_n_heads").
using Names = std::initializer_list<std::string_view>;

enum class Presence : std::uint8_t { kAbsent, kNull, kStated, kDefault };

// Where a field was found.
struct Found {
  Presence presence = Presence::kAbsent;
  const json::Value* value = nullptr;  // of kStated and kDefault
  std::string_view name;
  Origin origin;
  explicit operator bool() const { return value != nullptr; }
};

// The part of a config.json that describes the language model, and what stands in for what it
// leaves out. Reads fields by any of their names, checks their type and range, and keeps their
// origin.
//
// A JSON null counts as "not stated", and the family's default does not take its place: in the
// Python classes an explicit null switches the default off too (`sliding_window: null`).
struct FieldReader {
  const json::Value* outer = nullptr;  // the whole file
  const json::Value* text = nullptr;   // its language model; the same as `outer` where flat
  std::string text_pointer = {};       // "" or "/text_config" …
  const Family* family = nullptr;      // whose defaults count; null pointer if unknown
  std::vector<json::Warning>* warnings = nullptr;

  [[nodiscard]] bool nested() const { return text != outer; }

  // The first of `names` that the file states, else the family's default of the first that has one.
  [[nodiscard]] Found find(Names names) const;
  // The same without defaults.
  [[nodiscard]] Found find_stated(Names names) const;
  // At the top level of the file only, without defaults.
  [[nodiscard]] Found find_outer(Names names) const;
  // The family's default only.
  [[nodiscard]] Found find_default(Names names) const;

  void warn(std::string code, std::string where, std::string message) const;
};

struct IntRange {
  std::int64_t min = 1;
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
};

// One JSON value as an integer in `range`. `1e3` and `32.0` are taken with a warning; booleans,
// strings and fractions are errors, as is an integer beyond 64 bits.
Result<std::int64_t> to_integer(const json::Value& value, const std::string& where, IntRange range,
                                const FieldReader& reader);

// A finite number above zero, or at least zero with `zero_allowed`.
Result<double> to_number(const json::Value& value, const std::string& where,
                         bool zero_allowed = false);

// A string of at most 256 bytes without NUL and lone surrogates: a name that rules compare.
Result<std::string> to_name(const json::Value& value, const std::string& where);

Result<IntField> read_integer(const FieldReader& reader, Names names, IntRange range = {});
Result<DoubleField> read_number(const FieldReader& reader, Names names, bool zero_allowed = false);
Result<BoolField> read_boolean(const FieldReader& reader, Names names);
Result<StringField> read_name(const FieldReader& reader, Names names);

// Conversions of what find…() gave; an absent field if it gave nothing.
Result<IntField> as_integer(const FieldReader& reader, const Found& found, IntRange range = {});
Result<BoolField> as_boolean(const Found& found);
Result<std::vector<std::int64_t>> as_integers(const FieldReader& reader, const Found& found,
                                              IntRange range = {});

// Errors of this folder: `where` is the value's JSON pointer.
Error type_error(const json::Value& value, const std::string& where, std::string_view wanted);
Error value_error(const json::Value& value, const std::string& where, std::string message,
                  std::string hint = {});
Error missing_error(const std::string& where, std::string message, std::string hint = {});

// Fields that no file states: computed, or set by a rule.
IntField derived_integer(std::int64_t value, std::string rule);
Origin derived_origin(std::string rule);
Origin absent_origin(std::string rule);

}  // namespace kernelpath::config
