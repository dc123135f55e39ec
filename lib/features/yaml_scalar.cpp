#include "base/checked.h"
#include "features/yaml.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <regex>
#include <string>

namespace kernelpath::features {
namespace {

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

bool is_null(std::string_view text) { return is_one_of(text, {"", "~", "null", "Null", "NULL"}); }

std::optional<bool> as_bool(std::string_view text) {
  if (is_one_of(text, {"yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})) return true;
  if (is_one_of(text, {"no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})) {
    return false;
  }
  return std::nullopt;
}

// PyYAML's resolver for integers and floats, one alternative a pattern.
const std::regex& integer_pattern() {
  static const std::regex pattern(
      "[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|"
      "[-+]?[1-9][0-9_]*(:[0-5]?[0-9])+");
  return pattern;
}

const std::regex& float_pattern() {
  static const std::regex pattern(
      "[-+]?([0-9][0-9_]*)\\.[0-9_]*([eE][-+][0-9]+)?|\\.[0-9][0-9_]*([eE][-+][0-9]+)?|"
      "[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+\\.[0-9_]*");
  return pattern;
}

struct Digits {
  bool negative = false;
  std::string text;  // without sign and underscores
};

Digits digits_of(std::string_view text) {
  Digits out;
  if (text.starts_with('-') || text.starts_with('+')) {
    out.negative = text[0] == '-';
    text.remove_prefix(1);
  }
  for (const char c : text) {
    if (c != '_') out.text += c;
  }
  return out;
}

std::optional<std::int64_t> in_base(std::string_view digits, int base) {
  std::int64_t out = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), out, base);
  const bool whole = read.ec == std::errc() && read.ptr == digits.data() + digits.size();
  return whole ? std::optional(out) : std::nullopt;
}

double to_double(const std::string& digits) {
  double out = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), out);
  if (read.ec == std::errc::result_out_of_range) return std::numeric_limits<double>::infinity();
  return out;
}

// "1:30:00": each part is a digit of base 60.
json::Value sexagesimal(const Digits& digits) {
  double total = 0;
  std::string part;
  for (const char c : digits.text + ":") {
    if (c != ':') {
      part += c;
      continue;
    }
    total = total * 60 + to_double(part);
    part.clear();
  }
  if (digits.negative) total = -total;
  const bool whole =
      digits.text.find('.') == std::string::npos && total > -9.0e15 && total < 9.0e15;
  return whole ? json::Value::integer(static_cast<std::int64_t>(total))
               : json::Value::number(total);
}

json::Value integer_value(std::string_view text) {
  const Digits digits = digits_of(text);
  if (digits.text.find(':') != std::string::npos) return sexagesimal(digits);
  std::string_view body = digits.text;
  int base = 10;
  if (body.starts_with("0b") || body.starts_with("0x")) {
    base = body[1] == 'b' ? 2 : 16;
    body.remove_prefix(2);
  } else if (body.size() > 1 && body[0] == '0') {
    base = 8;
  }
  const auto value = in_base(body, base);
  // Longer than 64 bits: Python keeps all digits; no argument has such a value, a double will do.
  if (!value) return json::Value::number(to_double(std::string(body)) * (digits.negative ? -1 : 1));
  return json::Value::integer(digits.negative ? -*value : *value);
}

std::optional<double> special_float(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  const double infinity = std::numeric_limits<double>::infinity();
  if (is_one_of(text, {".inf", ".Inf", ".INF"})) return negative ? -infinity : infinity;
  if (is_one_of(text, {".nan", ".NaN", ".NAN"})) return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

json::Value float_value(std::string_view text) {
  const Digits digits = digits_of(text);
  if (digits.text.find(':') != std::string::npos) return sexagesimal(digits);
  const double value = to_double(digits.text);
  return json::Value::number(digits.negative ? -value : value);
}

}  // namespace

json::Value resolve_plain_scalar(std::string_view text) {
  if (is_null(text)) return json::Value::null();
  if (const auto flag = as_bool(text)) return json::Value::boolean(*flag);
  // The patterns backtrack; no number is this long.
  constexpr std::size_t kLongestNumber = 100;
  if (text.size() <= kLongestNumber) {
    if (const auto special = special_float(text)) return json::Value::number(*special);
    const std::string copy(text);
    if (std::regex_match(copy, integer_pattern())) return integer_value(text);
    if (std::regex_match(copy, float_pattern())) return float_value(text);
  }
  return json::Value::string(std::string(text));
}

}  // namespace kernelpath::features
