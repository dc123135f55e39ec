#include "base/units.h"

#include "base/text.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace kernelpath {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t bytes;
};

constexpr std::array kUnits = {
    Unit{"", 1},
    Unit{"B", 1},
    Unit{"KiB", 1LL << 10},
    Unit{"MiB", 1LL << 20},
    Unit{"GiB", 1LL << 30},
    Unit{"TiB", 1LL << 40},
    Unit{"KB", 1000LL},
    Unit{"MB", 1000LL * 1000},
    Unit{"GB", 1000LL * 1000 * 1000},
    Unit{"TB", 1000LL * 1000 * 1000 * 1000},
};

Error size_error(std::string_view text, std::string message, std::string hint) {
  return {.code = ErrorCode::kUsage,
          .message = std::move(message),
          .value = shorten(text, 32),
          .hint = std::move(hint)};
}

}  // namespace

Result<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size()) {
    return fail({.code = ErrorCode::kUsage,
                 .message = "not a whole number that fits 64 bits",
                 .value = shorten(text, 32)});
  }
  return value;
}

Result<std::int64_t> parse_bytes(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view unit_name = trim(text.substr(digits));
  double number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + digits, number);
  if (digits == 0 || status != std::errc() || end != text.data() + digits) {
    return fail(size_error(text, "not a size", "write 512, 64KiB, 80GiB or 80GB"));
  }
  for (const Unit& unit : kUnits) {
    if (!equal_ignoring_case(unit.name, unit_name)) continue;
    const double bytes = number * static_cast<double>(unit.bytes);
    if (bytes >= 0x1p62) return fail(size_error(text, "the size does not fit 62 bits", ""));
    if (bytes != std::floor(bytes) && unit.bytes == 1) {
      return fail(size_error(text, "a size in bytes is a whole number", ""));
    }
    return static_cast<std::int64_t>(bytes);
  }
  if (unit_name.size() == 1) {
    return fail(size_error(
        text, "a bare unit letter is ambiguous: engines read 1k and 1K as different numbers",
        fmt::format("write {0}{1}iB (binary) or {0}{1}B (decimal)", text.substr(0, digits),
                    to_upper(unit_name))));
  }
  return fail(size_error(text, "unknown unit", "known units: B KiB MiB GiB TiB KB MB GB TB"));
}

std::string format_bytes(std::int64_t bytes) {
  constexpr std::array<std::string_view, 6> kNames = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (std::abs(value) >= 1024 && unit + 1 < kNames.size()) {
    value /= 1024;
    ++unit;
  }
  if (value == std::floor(value)) return fmt::format("{:.0f} {}", value, kNames[unit]);
  return fmt::format("{:.1f} {}", value, kNames[unit]);
}

}  // namespace kernelpath
