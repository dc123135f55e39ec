#include "json/value.h"

#include "base/assert.h"
#include "base/text.h"
#include "json/number.h"
#include "json/string_text.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace kernelpath::json {
namespace {

const std::string kEmptyString;

// Members in the order of their keys: equal objects may list them in any order.
std::vector<const Member*> sorted_members(std::span<const Member> members) {
  std::vector<const Member*> out(members.size());
  std::transform(members.begin(), members.end(), out.begin(), [](const Member& m) { return &m; });
  std::sort(out.begin(), out.end(),
            [](const Member* a, const Member* b) { return a->key < b->key; });
  return out;
}

bool equal_objects(const Value& a, const Value& b) {
  if (a.members().size() != b.members().size()) return false;
  const auto equal = [](const Member& x, const Member& y) {
    return x.key == y.key && x.value == y.value;
  };
  const auto left = sorted_members(a.members());
  const auto right = sorted_members(b.members());
  return std::equal(left.begin(), left.end(), right.begin(),
                    [&](const Member* x, const Member* y) { return equal(*x, *y); });
}

bool equal_numbers(const Value& a, const Value& b) {
  if (a.type() == b.type()) {
    if (a.type() == Type::kInteger) return a.as_integer() == b.as_integer();
    if (a.type() == Type::kBigInteger) return a.number_text() == b.number_text();
    return a.as_double() == b.as_double();
  }
  if (a.type() == Type::kDouble) return equal_numbers(b, a);
  if (b.type() != Type::kDouble) return false;  // one fits 64 bits, the other does not
  const std::string spelling = a.is_integer() ? std::to_string(a.as_integer()) : a.number_text();
  return b.as_double() == 0 ? spelling == "0" : integer_equals_double(spelling, b.as_double());
}

// Stops soon after `limit`: a value may be megabytes long.
void append_brief(const Value& value, std::size_t limit, std::string& out) {
  if (out.size() > limit) return;
  switch (value.type()) {
    case Type::kNull:
      out += "null";
      return;
    case Type::kBool:
      out += value.as_bool() ? "true" : "false";
      return;
    case Type::kString:
      append_quoted(std::string_view(value.as_string()).substr(0, limit), out);
      return;
    case Type::kArray: {
      out += '[';
      std::string_view separator;
      for (const Value& item : value.items()) {
        if (out.size() > limit) return;
        out += std::exchange(separator, ", ");
        append_brief(item, limit, out);
      }
      out += ']';
      return;
    }
    case Type::kObject: {
      out += '{';
      std::string_view separator;
      for (const Member& member : value.members()) {
        if (out.size() > limit) return;
        out += std::exchange(separator, ", ");
        append_quoted(std::string_view(member.key).substr(0, limit), out);
        out += ": ";
        append_brief(member.value, limit, out);
      }
      out += '}';
      return;
    }
    default:
      out += value.number_text();
  }
}

}  // namespace

std::string_view type_name(Type type) {
  switch (type) {
    case Type::kNull:
      return "null";
    case Type::kBool:
      return "boolean";
    case Type::kInteger:
    case Type::kBigInteger:
      return "integer";
    case Type::kDouble:
      return "number";
    case Type::kString:
      return "string";
    case Type::kArray:
      return "array";
    case Type::kObject:
      return "object";
  }
  return "unknown";
}

bool Value::as_bool() const {
  KERNELPATH_ASSERT(is_bool());
  return bool_;
}

std::int64_t Value::as_integer() const {
  KERNELPATH_ASSERT(is_integer());
  return number_.integer;
}

const std::string& Value::as_string() const {
  KERNELPATH_ASSERT(is_string());
  return data_ ? *static_cast<const std::string*>(data_.get()) : kEmptyString;
}

std::span<const Value> Value::items() const {
  KERNELPATH_ASSERT(is_array());
  if (!data_) return {};
  return *static_cast<const std::vector<Value>*>(data_.get());
}

std::span<const Member> Value::members() const {
  KERNELPATH_ASSERT(is_object());
  if (!data_) return {};
  return *static_cast<const std::vector<Member>*>(data_.get());
}

double Value::as_double() const {
  KERNELPATH_ASSERT(is_number());
  return is_integer() ? static_cast<double>(number_.integer) : number_.real;
}

std::string Value::number_text() const {
  KERNELPATH_ASSERT(is_number());
  if (data_) return *static_cast<const std::string*>(data_.get());
  return is_integer() ? std::to_string(number_.integer) : format_double(number_.real);
}

const Value* Value::find(std::string_view key) const {
  if (!is_object()) return nullptr;
  for (const Member& member : members()) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

const Value* Value::find_non_null(std::string_view key) const {
  const Value* const value = find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::string Value::brief(std::size_t limit) const {
  constexpr std::size_t kEllipsis = std::string_view("…").size();
  std::string out;
  append_brief(*this, limit, out);
  return out.size() <= limit ? out : shorten(out, limit - std::min(limit, kEllipsis));
}

bool operator==(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return equal_numbers(a, b);
  if (a.type() != b.type()) return false;
  switch (a.type()) {
    case Type::kBool:
      return a.as_bool() == b.as_bool();
    case Type::kString:
      return a.as_string() == b.as_string();
    case Type::kArray:
      return std::equal(a.items().begin(), a.items().end(), b.items().begin(), b.items().end());
    case Type::kObject:
      return equal_objects(a, b);
    default:
      return true;  // null
  }
}

Value Value::boolean(bool value) {
  Value out;
  out.type_ = Type::kBool;
  out.bool_ = value;
  return out;
}

Value Value::integer(std::int64_t value) {
  Value out;
  out.type_ = Type::kInteger;
  out.number_.integer = value;
  return out;
}

Value Value::number(double value) {
  Value out;
  out.type_ = Type::kDouble;
  out.number_.real = value;
  return out;
}

Value Value::string(std::string value) {
  Value out;
  out.type_ = Type::kString;
  out.data_ = std::make_shared<const std::string>(std::move(value));
  return out;
}

Value Value::array(std::vector<Value> items) {
  Value out;
  out.type_ = Type::kArray;
  out.data_ = std::make_shared<const std::vector<Value>>(std::move(items));
  return out;
}

Value Value::object(std::vector<Member> members) {
  Value out;
  out.type_ = Type::kObject;
  out.data_ = std::make_shared<const std::vector<Member>>(std::move(members));
  return out;
}

}  // namespace kernelpath::json
