#include "features/context.h"

#include "base/text.h"
#include "base/units.h"
#include "features/argument_tree.h"

#include <optional>
#include <string_view>

namespace kernelpath::features {
namespace {

// The spellings of booleans that YAML readers and pydantic share.
std::optional<bool> spelled_bool(const std::string& text) {
  const std::string lower = to_lower(text);
  if (lower == "true" || lower == "yes" || lower == "on" || lower == "1") return true;
  if (lower == "false" || lower == "no" || lower == "off" || lower == "0") return false;
  return std::nullopt;
}

std::optional<Value> as_bool(const json::Value& value) {
  if (value.is_bool()) return Value::boolean(value.as_bool());
  if (value.is_string()) {
    const auto spelled = spelled_bool(value.as_string());
    if (spelled) return Value::boolean(*spelled);
  }
  return std::nullopt;
}

std::optional<Value> as_integer(const json::Value& value) {
  if (value.is_integer()) return Value::integer(value.as_integer());
  if (value.is_string()) {
    const auto parsed = parse_integer(value.as_string());
    if (parsed) return Value::integer(*parsed);
  }
  if (value.type() != json::Type::kDouble) return std::nullopt;
  const double number = value.as_double();
  const bool whole = number > -9.0e15 && number < 9.0e15 &&
                     static_cast<double>(static_cast<std::int64_t>(number)) == number;
  if (!whole) return std::nullopt;
  return Value::integer(static_cast<std::int64_t>(number));
}

std::optional<Value> convert(const json::Value& value, FieldType type, Arena& arena) {
  if (value.is_null()) return Value();
  switch (type) {
    case FieldType::kAny:
      return arena.from_json(value);
    case FieldType::kBool:
      return as_bool(value);
    case FieldType::kInteger:
      return as_integer(value);
    case FieldType::kNumber:
      if (value.is_number()) return arena.from_json(value);
      return as_integer(value);
    case FieldType::kString:
      if (value.is_string()) return arena.from_json(value);
      return std::nullopt;
    case FieldType::kList:
      if (value.is_array()) return arena.from_json(value);
      return std::nullopt;
    case FieldType::kObject:
      if (value.is_object()) return arena.from_json(value);
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

Context::Context(const RuleTable& table)
    : table_(&table),
      arena_(std::make_shared<Arena>()),
      values_(table.schema.size()),
      stated_(table.schema.size(), 0) {
  for (std::uint32_t i = 0; i < values_.size(); ++i) {
    values_[i] = table.schema.field(i).default_value;
  }
}

std::vector<Mistyped> Context::state(const json::Value& arguments) {
  std::vector<Mistyped> wrong;
  for (std::uint32_t i = 0; i < values_.size(); ++i) {
    const FieldInfo& field = table_->schema.field(i);
    const json::Value* found = find_argument_value(arguments, field.name);
    for (std::size_t a = 0; found == nullptr && a < field.aliases.size(); ++a) {
      found = find_argument_value(arguments, field.aliases[a]);
    }
    if (found == nullptr || state(i, *found)) continue;
    wrong.push_back({.field = i, .found = found->brief()});
  }
  return wrong;
}

bool Context::state(std::uint32_t field, const json::Value& value) {
  const auto converted = convert(value, table_->schema.field(field).type, *arena_);
  if (converted) state(field, *converted);
  return converted.has_value();
}

void Context::state(std::uint32_t field, const Value& value) {
  values_[field] = value;
  stated_[field] = 1;
}

void Context::unstate(std::uint32_t field) {
  values_[field] = table_->schema.field(field).default_value;
  stated_[field] = 0;
}

bool fits_type(const json::Value& value, FieldType type) {
  Arena arena;
  return convert(value, type, arena).has_value();
}

}  // namespace kernelpath::features
