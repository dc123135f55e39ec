#include "bench/random_data.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace kernelpath::bench {
namespace {

// splitmix64 (Steele, Lea, Flood 2014): a bijection, so that no two words repeat.
std::uint64_t mixed(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15ULL;
  value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  value = (value ^ (value >> 27U)) * 0x94D049BB133111EBULL;
  return value ^ (value >> 31U);
}

constexpr std::uint64_t repeated(std::uint64_t bits, int width) {
  std::uint64_t out = 0;
  for (int at = 0; at < 64; at += width) out |= bits << static_cast<unsigned>(at);
  return out;
}

constexpr BitPattern repeated_pattern(std::uint64_t mask, std::uint64_t base, int width) {
  return {.mask = repeated(mask, width), .base = repeated(base, width)};
}

}  // namespace

BitPattern pattern_of(attention::DataType type) {
  // Sign and mantissa, and the lowest bit of the exponent, which goes from 1/2 to 1.
  switch (type) {
    case attention::DataType::kF32:
      return repeated_pattern(0x80FFFFFF, 0x3F000000, 32);
    case attention::DataType::kBf16:
      return repeated_pattern(0x80FF, 0x3F00, 16);
    case attention::DataType::kF16:
      return repeated_pattern(0x87FF, 0x3800, 16);
    case attention::DataType::kFp8E4m3:
      return repeated_pattern(0x8F, 0x30, 8);
    case attention::DataType::kFp8E5m2:
      return repeated_pattern(0x87, 0x38, 8);
    case attention::DataType::kNvfp4:
      return kAnyBits;
  }
  return kAnyBits;
}

void fill_random(const kernels::cpu::Team& team, std::span<std::byte> data,
                 const BitPattern& pattern, std::uint64_t seed) {
  const auto bytes = static_cast<std::int64_t>(data.size());
  constexpr std::int64_t kWord = 8;
  const auto [first, last] = team.share((bytes + kWord - 1) / kWord, 512);
  for (std::int64_t i = first; i < last; ++i) {
    const std::uint64_t word =
        (mixed(seed + static_cast<std::uint64_t>(i)) & pattern.mask) | pattern.base;
    const std::int64_t size = std::min(kWord, bytes - i * kWord);
    std::memcpy(data.data() + i * kWord, &word, static_cast<std::size_t>(size));
  }
}

std::vector<std::int32_t> random_order(std::int64_t count, std::uint64_t seed) {
  std::vector<std::int32_t> out(static_cast<std::size_t>(count));
  std::iota(out.begin(), out.end(), 0);
  for (std::size_t i = out.size(); i > 1; --i) {
    const std::size_t other = mixed(seed + i) % i;
    std::swap(out[i - 1], out[other]);
  }
  return out;
}

}  // namespace kernelpath::bench
