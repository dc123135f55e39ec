#pragma once

#include "base/checked.h"

#include <cstdint>

namespace kernelpath {

// The smallest multiple of `unit` that is not below `value`, for value ≥ 0, unit > 0. The caller
// knows that it fits.
constexpr std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return ceil_div(value, unit) * unit;
}

}  // namespace kernelpath
