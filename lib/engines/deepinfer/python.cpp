#include "engines/deepinfer/python.h"

#include <charconv>
#include <cmath>
#include <limits>

namespace kernelpath::engines::deepinfer {
namespace {

std::string_view stripped(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n\r\f\v";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// "1_000" → "1000"; nothing where an underscore does not stand between two digits.
std::optional<std::string> without_underscores(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    const bool between =
        i > 0 && i + 1 < text.size() && is_digit(text[i - 1]) && is_digit(text[i + 1]);
    if (!between) return std::nullopt;
  }
  return out;
}

// A leading '+' is Python's, not from_chars'.
std::string_view without_plus(std::string_view text) {
  const bool plus = text.starts_with('+') && !text.starts_with("+-");
  return plus ? text.substr(1) : text;
}

}  // namespace

std::optional<std::int64_t> python_int(std::string_view text) {
  const std::optional<std::string> digits = without_underscores(stripped(text));
  if (!digits) return std::nullopt;
  const std::string_view number = without_plus(*digits);
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), out);
  if (error != std::errc() || end != number.data() + number.size()) return std::nullopt;
  return out;
}

std::optional<double> python_float(std::string_view text) {
  const std::optional<std::string> digits = without_underscores(stripped(text));
  if (!digits) return std::nullopt;
  const std::string_view number = without_plus(*digits);
  // from_chars would also take "nan(abc)".
  if (number.find('(') != std::string_view::npos) return std::nullopt;
  double out = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), out);
  if (end != number.data() + number.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range)
    return number.starts_with('-') ? -HUGE_VAL : HUGE_VAL;
  if (error != std::errc()) return std::nullopt;
  return out;
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

std::int64_t floor_remainder(std::int64_t a, std::int64_t b) { return a - floor_divide(a, b) * b; }

}  // namespace kernelpath::engines::deepinfer
