#pragma once

#include "features/rule_table.h"
#include "json/value.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kernelpath::features {

// A value that an argument cannot take, found while its JSON was read.
struct Mistyped {
  std::uint32_t field = 0;
  std::string found = {};  // the value's brief spelling
};

// The values of all fields for one question: what the user stated, facts about model and device,
// and the engine's defaults for the rest. Copies are cheap and share the texts.
class Context {
 public:
  // Everything at its default. The table must outlive the context.
  explicit Context(const RuleTable& table);

  // States every field that `arguments` holds, under its name or an alias ("a.b" is b inside a).
  // Strings that spell a number or a boolean are read as such where the field asks for one, as the
  // engines' own readers do. A value of another type stays unstated and is returned.
  std::vector<Mistyped> state(const json::Value& arguments);

  // States one field; false if the value's type does not fit it.
  bool state(std::uint32_t field, const json::Value& value);
  void state(std::uint32_t field, const Value& value);
  // Back to the default.
  void unstate(std::uint32_t field);
  // Sets a field without stating it: what rules derive.
  void assign(std::uint32_t field, const Value& value) { values_[field] = value; }

  [[nodiscard]] const Value& value(std::uint32_t field) const { return values_[field]; }
  [[nodiscard]] bool is_stated(std::uint32_t field) const { return stated_[field] != 0; }
  [[nodiscard]] Slots slots() const { return {.values = values_.data(), .stated = stated_.data()}; }
  [[nodiscard]] const RuleTable& table() const { return *table_; }
  [[nodiscard]] const std::vector<Value>& values() const { return values_; }
  // For values made while the context is in use.
  Arena& arena() { return *arena_; }
  // Holds what such values stand for, beyond the context's own life.
  [[nodiscard]] std::shared_ptr<const Arena> shared_arena() const { return arena_; }

 private:
  const RuleTable* table_;
  std::shared_ptr<Arena> arena_;
  std::vector<Value> values_;
  std::vector<std::uint8_t> stated_;
};

// True if a field of the type accepts the value, after the conversions that state() makes.
bool fits_type(const json::Value& value, FieldType type);

}  // namespace kernelpath::features
