#pragma once

#include "base/checked.h"

#include <cstdint>
#include <initializer_list>
#include <limits>

namespace kernelpath::engines::llamacpp {

// Stands for "does not fit 64 bits": metadata may hold any 32-bit numbers.
inline constexpr std::int64_t kTooLarge = std::numeric_limits<std::int64_t>::max();

// Product and sum of numbers of 0 or more; kTooLarge where they do not fit. A factor of 0 wins.
inline std::int64_t saturating_product(std::initializer_list<std::int64_t> factors) {
  std::int64_t out = 1;
  bool fits = true;
  for (const std::int64_t factor : factors) {
    if (factor == 0) return 0;
    const auto product = checked_mul(out, factor);
    fits = fits && product && factor != kTooLarge;
    out = product.value_or(1);
  }
  return fits ? out : kTooLarge;
}

inline std::int64_t saturating_sum(std::int64_t a, std::int64_t b) {
  return checked_add(a, b).value_or(kTooLarge);
}

}  // namespace kernelpath::engines::llamacpp
