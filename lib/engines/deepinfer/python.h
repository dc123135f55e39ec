#pragma once

#include "engines/python.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace kernelpath::engines::deepinfer {

// int(text) and float(text): blanks around, signs and underscores between digits are taken. Nothing
// for a text that Python refuses, or for an integer beyond 64 bits.
std::optional<std::int64_t> python_int(std::string_view text);
std::optional<double> python_float(std::string_view text);

// a // b for b != 0: rounds down also below zero. The remainder has the sign of b.
std::int64_t floor_divide(std::int64_t a, std::int64_t b);
std::int64_t floor_remainder(std::int64_t a, std::int64_t b);

}  // namespace kernelpath::engines::deepinfer
