#pragma once

#include "json/value.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kernelpath::json {

// A JSON number as Python's json module reads it.
struct NumberParts {
  Type type = Type::kInteger;  // kInteger, kBigInteger or kDouble
  std::int64_t integer = 0;    // of kInteger
  double real = 0;             // rounded value of the two others; ±infinity where it is too large
};

// Reads a whole token; nothing if it is no number. Takes RFC 8259's grammar and the literals NaN,
// Infinity and -Infinity.
std::optional<NumberParts> parse_number(std::string_view token);

// The literals alone: "NaN", "Infinity", "-Infinity".
std::optional<double> parse_nonfinite(std::string_view token);

// The number at the start of a text, in RFC 8259's grammar.
struct NumberScan {
  std::size_t end = 0;            // one past the number, or where the fault is
  std::string_view problem = {};  // empty if there is no fault
};
NumberScan scan_number(std::string_view text);

// Shortest spelling that reads back as the same number, with a point or an exponent: "1.0",
// "1e+30". NaN and infinities as Python writes them.
std::string format_double(double value);

// `spelling` denotes a whole number of any length; is it exactly `value`?
bool integer_equals_double(std::string_view spelling, double value);

}  // namespace kernelpath::json
