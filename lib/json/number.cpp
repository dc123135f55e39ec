#include "json/number.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

namespace kernelpath::json {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::size_t skip_digits(std::string_view text, std::size_t i) {
  while (i < text.size() && is_digit(text[i])) ++i;
  return i;
}

// Of a number that from_chars found out of range: too large, or too small?
bool is_too_large(std::string_view token) {
  const std::size_t exponent_at = token.find_first_of("eE");
  const std::string_view mantissa = token.substr(0, exponent_at);
  std::int64_t exponent = 0;
  if (exponent_at != std::string_view::npos) {
    std::string_view digits = token.substr(exponent_at + 1);
    const bool negative = digits.front() == '-';
    if (negative || digits.front() == '+') digits.remove_prefix(1);
    constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max() / 4;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), exponent).ec != std::errc{}) {
      exponent = kHuge;
    }
    exponent = negative ? -std::min(exponent, kHuge) : std::min(exponent, kHuge);
  }
  const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
  const std::size_t first = std::min(mantissa.find_first_of("123456789"), mantissa.size());
  return exponent + static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first) > 0;
}

double to_double(std::string_view token) {
  double value = 0;
  const auto result = std::from_chars(token.data(), token.data() + token.size(), value);
  if (result.ec != std::errc::result_out_of_range) return value;
  const double magnitude = is_too_large(token) ? std::numeric_limits<double>::infinity() : 0.0;
  return token.front() == '-' ? -magnitude : magnitude;
}

}  // namespace

NumberScan scan_number(std::string_view text) {
  const auto at = [&](std::size_t i) { return i < text.size() ? text[i] : '\0'; };
  std::size_t i = at(0) == '-' ? 1 : 0;
  if (!is_digit(at(i))) return {i, "a digit must follow '-'"};
  if (at(i) == '0' && is_digit(at(i + 1))) return {i, "a number may not start with 0"};
  if (at(i) == '0' && (at(i + 1) == 'x' || at(i + 1) == 'X')) {
    return {i + 1, "hexadecimal numbers are not JSON"};
  }
  i = skip_digits(text, i);
  if (at(i) == '.') {
    if (!is_digit(at(i + 1))) return {i + 1, "a digit must follow the decimal point"};
    i = skip_digits(text, i + 1);
  }
  if (at(i) == 'e' || at(i) == 'E') {
    ++i;
    if (at(i) == '+' || at(i) == '-') ++i;
    if (!is_digit(at(i))) return {i, "the exponent has no digits"};
    i = skip_digits(text, i);
  }
  return {i, {}};
}

std::optional<double> parse_nonfinite(std::string_view token) {
  if (token == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (token == "Infinity") return std::numeric_limits<double>::infinity();
  if (token == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

std::optional<NumberParts> parse_number(std::string_view token) {
  if (const auto literal = parse_nonfinite(token)) return NumberParts{Type::kDouble, 0, *literal};
  const NumberScan scan = scan_number(token);
  if (!scan.problem.empty() || scan.end != token.size()) return std::nullopt;
  if (token.find_first_of(".eE") != std::string_view::npos) {
    return NumberParts{Type::kDouble, 0, to_double(token)};
  }
  NumberParts parts;
  const char* const end = token.data() + token.size();
  if (std::from_chars(token.data(), end, parts.integer).ec != std::errc{}) {
    return NumberParts{Type::kBigInteger, 0, to_double(token)};
  }
  return parts;
}

std::string format_double(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

bool integer_equals_double(std::string_view spelling, double value) {
  return std::isfinite(value) && std::trunc(value) == value &&
         fmt::format("{:.0f}", value) == spelling;
}

}  // namespace kernelpath::json
