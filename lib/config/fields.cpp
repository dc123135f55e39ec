#include "config/fields.h"

#include "base/assert.h"
#include "config/warnings.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace kernelpath::config {
namespace {

constexpr std::size_t kMaxNameBytes = 256;

const json::Value* find_path(const json::Value& object, std::string_view path) {
  const json::Value* value = &object;
  while (true) {
    const std::size_t slash = path.find('/');
    value = value->find(path.substr(0, slash));
    if (value == nullptr || slash == std::string_view::npos) return value;
    path.remove_prefix(slash + 1);
  }
}

Found find_in(const json::Value& object, const std::string& pointer, Names names) {
  Found found;
  for (const std::string_view name : names) {
    if (name.empty()) continue;  // a family without a name of its own
    const json::Value* value = find_path(object, name);
    if (value == nullptr) continue;
    Origin origin{OriginKind::kField, fmt::format("{}/{}", pointer, name), {}};
    if (!value->is_null()) return {Presence::kStated, value, name, std::move(origin)};
    if (found.presence == Presence::kAbsent) {
      origin.kind = OriginKind::kAbsent;
      found = {Presence::kNull, nullptr, name, std::move(origin)};
    }
  }
  return found;
}

std::string_view plain_type(const json::Value& value) {
  if (value.is_bool()) return "boolean";
  if (value.is_string()) return "string";
  if (value.is_array()) return "list";
  if (value.is_object()) return "object";
  return value.is_null() ? "null" : "number";
}

std::string_view last_part(const std::string& where) {
  return std::string_view(where).substr(where.rfind('/') + 1);
}

Error range_error(const json::Value& value, const std::string& where, IntRange range) {
  if (value.as_double() < static_cast<double>(range.min) || range.max < range.min) {
    const std::string wanted = range.min == 1   ? "must be positive"
                               : range.min == 0 ? "must not be negative"
                                                : fmt::format("must be at least {}", range.min);
    return value_error(value, where, fmt::format("{} {}", last_part(where), wanted));
  }
  return value_error(value, where,
                     fmt::format("{} is over the limit of {}", last_part(where), range.max));
}

// A number written with a fraction or an exponent, where an integer is needed.
Result<std::int64_t> exact_integer(const json::Value& value, const std::string& where,
                                   const FieldReader& reader) {
  const double number = value.as_double();
  constexpr double kLargestExact = 9007199254740992.0;  // 2^53: beyond it, digits are lost
  if (!std::isfinite(number) || std::trunc(number) != number || std::abs(number) > kLargestExact) {
    return fail(value_error(value, where, "an integer is needed"));
  }
  const auto integer = static_cast<std::int64_t>(number);
  reader.warn("CONFIG-FLOAT-INTEGER", where,
              fmt::format("{} stands where an integer is needed; taken as {}", value.number_text(),
                          integer));
  return integer;
}

}  // namespace

Found FieldReader::find_stated(Names names) const { return find_in(*text, text_pointer, names); }

Found FieldReader::find_outer(Names names) const { return find_in(*outer, "", names); }

Found FieldReader::find_default(Names names) const {
  if (family == nullptr) return {};
  for (const std::string_view name : names) {
    if (const json::Value* value = family->default_of(name)) {
      return {Presence::kDefault, value, name, {OriginKind::kDefault, {}, family->rule()}};
    }
  }
  return {};
}

Found FieldReader::find(Names names) const {
  Found found = find_stated(names);
  if (found.presence != Presence::kAbsent || family == nullptr) return found;
  return find_default(names);
}

void FieldReader::warn(std::string code, std::string where, std::string message) const {
  KERNELPATH_ASSERT(find_warning_info(code) != nullptr);
  warnings->push_back({std::move(code), std::move(where), std::move(message)});
}

Result<std::int64_t> to_integer(const json::Value& value, const std::string& where, IntRange range,
                                const FieldReader& reader) {
  if (value.type() == json::Type::kBigInteger) {
    return fail(Error{.code = ErrorCode::kConfigOverflow,
                      .message = fmt::format("{} does not fit 64 bits", last_part(where)),
                      .where = where,
                      .value = value.brief()});
  }
  if (!value.is_number()) return fail(type_error(value, where, "an integer"));
  std::int64_t integer = 0;
  if (value.is_integer()) {
    integer = value.as_integer();
  } else {
    KERNELPATH_TRY(exact, exact_integer(value, where, reader));
    integer = exact;
  }
  if (integer < range.min || integer > range.max) return fail(range_error(value, where, range));
  return integer;
}

Result<double> to_number(const json::Value& value, const std::string& where, bool zero_allowed) {
  if (!value.is_number()) return fail(type_error(value, where, "a number"));
  const double number = value.as_double();
  if (!std::isfinite(number)) {
    return fail(value_error(value, where, "a finite number is needed"));
  }
  if (number < 0 || (number == 0 && !zero_allowed)) {
    return fail(value_error(
        value, where,
        fmt::format("{} must be {}", last_part(where), zero_allowed ? "at least 0" : "above 0")));
  }
  return number;
}

Result<std::string> to_name(const json::Value& value, const std::string& where) {
  if (!value.is_string()) return fail(type_error(value, where, "a string"));
  const std::string& name = value.as_string();
  if (name.size() > kMaxNameBytes) {
    return fail(value_error(value, where, fmt::format("name longer than {} bytes", kMaxNameBytes)));
  }
  if (name.find('\0') != std::string::npos) {
    return fail(value_error(value, where, "a name must not hold a NUL"));
  }
  if (value.has_lone_surrogate()) {
    return fail(value_error(value, where, "half of a surrogate pair is no character"));
  }
  return name;
}

Result<IntField> as_integer(const FieldReader& reader, const Found& found, IntRange range) {
  if (!found) return IntField{std::nullopt, found.origin};
  KERNELPATH_TRY(value, to_integer(*found.value, found.origin.where, range, reader));
  return IntField{value, found.origin};
}

Result<BoolField> as_boolean(const Found& found) {
  if (!found) return BoolField{std::nullopt, found.origin};
  // 0 and 1 are what Python's truth takes them for.
  if (found.value->is_integer() && (found.value->as_integer() | 1) == 1) {
    return BoolField{found.value->as_integer() == 1, found.origin};
  }
  if (!found.value->is_bool()) {
    return fail(type_error(*found.value, found.origin.where, "true or false"));
  }
  return BoolField{found.value->as_bool(), found.origin};
}

Result<std::vector<std::int64_t>> as_integers(const FieldReader& reader, const Found& found,
                                              IntRange range) {
  std::vector<std::int64_t> integers;
  if (!found) return integers;
  if (!found.value->is_array()) {
    return fail(type_error(*found.value, found.origin.where, "a list of integers"));
  }
  integers.reserve(found.value->items().size());
  for (const json::Value& item : found.value->items()) {
    const std::string where = fmt::format("{}/{}", found.origin.where, integers.size());
    KERNELPATH_TRY(integer, to_integer(item, where, range, reader));
    integers.push_back(integer);
  }
  return integers;
}

Result<IntField> read_integer(const FieldReader& reader, Names names, IntRange range) {
  return as_integer(reader, reader.find(names), range);
}

Result<DoubleField> read_number(const FieldReader& reader, Names names, bool zero_allowed) {
  const Found found = reader.find(names);
  if (!found) return DoubleField{std::nullopt, found.origin};
  KERNELPATH_TRY(number, to_number(*found.value, found.origin.where, zero_allowed));
  return DoubleField{number, found.origin};
}

Result<BoolField> read_boolean(const FieldReader& reader, Names names) {
  return as_boolean(reader.find(names));
}

Result<StringField> read_name(const FieldReader& reader, Names names) {
  const Found found = reader.find(names);
  if (!found) return StringField{std::nullopt, found.origin};
  KERNELPATH_TRY(name, to_name(*found.value, found.origin.where));
  return StringField{name, found.origin};
}

Error type_error(const json::Value& value, const std::string& where, std::string_view wanted) {
  std::string hint;
  if (value.is_string() && wanted != "an object" && !wanted.starts_with("a list")) {
    hint = fmt::format("write it without quotes: \"{}\": {}", last_part(where), value.as_string());
  }
  return Error{.code = ErrorCode::kConfigType,
               .message = fmt::format("{} where {} is needed", plain_type(value), wanted),
               .where = where,
               .value = value.brief(),
               .hint = value.is_string() && value.as_string().size() > 32 ? "" : std::move(hint)};
}

Error value_error(const json::Value& value, const std::string& where, std::string message,
                  std::string hint) {
  return Error{.code = ErrorCode::kConfigValue,
               .message = std::move(message),
               .where = where,
               .value = value.brief(),
               .hint = std::move(hint)};
}

Error missing_error(const std::string& where, std::string message, std::string hint) {
  return Error{.code = ErrorCode::kConfigMissing,
               .message = std::move(message),
               .where = where,
               .hint = std::move(hint)};
}

IntField derived_integer(std::int64_t value, std::string rule) {
  return {value, derived_origin(std::move(rule))};
}

Origin derived_origin(std::string rule) { return {OriginKind::kDerived, {}, std::move(rule)}; }

Origin absent_origin(std::string rule) { return {OriginKind::kAbsent, {}, std::move(rule)}; }

}  // namespace kernelpath::config
