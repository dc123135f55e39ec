#pragma once

#include "attention/data_type.h"
#include "kernels/cpu/team.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kernelpath::bench {

// Values that a benchmark computes with: random and never zeros, since data decide how much power
// and therefore what clock a processor has; finite in every format, magnitudes of 0.5 to 2.
struct BitPattern {
  std::uint64_t mask = 0;  // random bits
  std::uint64_t base = 0;  // bits that are set
};
BitPattern pattern_of(attention::DataType type);
// Any bits: integer codes, e2m1.
inline constexpr BitPattern kAnyBits{.mask = ~std::uint64_t{0}, .base = 0};

// Fills this thread's share with values that depend on `seed` and their place alone.
void fill_random(const kernels::cpu::Team& team, std::span<std::byte> data,
                 const BitPattern& pattern, std::uint64_t seed);

// A random order of 0 … count - 1, the same for the same seed.
std::vector<std::int32_t> random_order(std::int64_t count, std::uint64_t seed);

}  // namespace kernelpath::bench
