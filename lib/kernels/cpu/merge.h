#pragma once

#include "attention/lse.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

namespace kernelpath::kernels::cpu {

// Attention output over one part of the keys (a split, or a rank's shard of the cache).
template <attention::LogBase Base>
struct AttentionPart {
  const float* o = nullptr;       // [rows, dim]
  attention::ConstLse<Base> lse;  // [rows]
};

template <attention::LogBase Base>
struct MergedAttention {
  float* o = nullptr;        // [rows, dim]
  attention::Lse<Base> lse;  // [rows]; data may be null
};

struct MergeSize {
  std::int64_t rows = 0;
  std::int64_t dim = 0;
};

// What a unit of an lse is in natural ones.
template <attention::LogBase Base>
inline constexpr double kNaturalUnit =
    Base == attention::LogBase::kE ? 1.0 : 0.69314718055994530942;

// One row of merge_attention() below: writes o [dim] and returns the natural lse.
template <attention::LogBase Base>
double merge_row(std::span<const AttentionPart<Base>> parts, const MergeSize& size,
                 std::int64_t row, double sink, float* o) {
  const auto exponent = [&](const AttentionPart<Base>& part) {
    return static_cast<double>(part.lse.data[row]) * kNaturalUnit<Base>;
  };
  double maximum = sink;
  for (const auto& part : parts) maximum = std::fmax(maximum, exponent(part));
  for (std::int64_t d = 0; d < size.dim; ++d) o[d] = 0.0F;
  if (maximum == -std::numeric_limits<double>::infinity()) return maximum;
  double sum = std::exp(sink - maximum);
  for (const auto& part : parts) sum += std::exp(exponent(part) - maximum);
  for (const auto& part : parts) {
    const double weight = std::exp(exponent(part) - maximum) / sum;
    if (weight == 0) continue;
    for (std::int64_t d = 0; d < size.dim; ++d) {
      o[d] += static_cast<float>(weight * static_cast<double>(part.o[row * size.dim + d]));
    }
  }
  return maximum + std::log(sum);
}

// Attention over all keys from attention over disjoint parts of them: parts of one base only, which
// their types say. `sinks` ([rows], natural logits, one more term in the denominator) join here and
// must not be in the parts already; null: none. A part without keys (lse -inf) does not count,
// whatever its o holds; if no part has keys, o is 0 and the lse -inf (or the sink's).
template <attention::LogBase Base>
void merge_attention(std::span<const AttentionPart<Base>> parts, const MergeSize& size,
                     const float* sinks, const MergedAttention<Base>& merged) {
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  for (std::int64_t row = 0; row < size.rows; ++row) {
    const double sink = sinks != nullptr ? static_cast<double>(sinks[row]) : kNone;
    const double lse = merge_row(parts, size, row, sink, merged.o + row * size.dim);
    if (merged.lse.data != nullptr)
      merged.lse.data[row] = static_cast<float>(lse / kNaturalUnit<Base>);
  }
}

}  // namespace kernelpath::kernels::cpu
