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

// Attention over all keys from attention over disjoint parts of them: parts of one base only, which
// their types say. `sinks` ([rows], natural logits, one more term in the denominator) join here and
// must not be in the parts already; null: none. A part without keys (lse -inf) does not count,
// whatever its o holds; if no part has keys, o is 0 and the lse -inf (or the sink's).
template <attention::LogBase Base>
void merge_attention(std::span<const AttentionPart<Base>> parts, const MergeSize& size,
                     const float* sinks, const MergedAttention<Base>& merged) {
  // Base 2 and base e differ in the unit of the exponents only.
  constexpr double kUnit = Base == attention::LogBase::kE ? 1.0 : 0.69314718055994530942;
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  for (std::int64_t row = 0; row < size.rows; ++row) {
    double maximum = sinks != nullptr ? static_cast<double>(sinks[row]) : kNone;
    for (const auto& part : parts) {
      maximum = std::fmax(maximum, static_cast<double>(part.lse.data[row]) * kUnit);
    }
    float* o = merged.o + row * size.dim;
    for (std::int64_t d = 0; d < size.dim; ++d) o[d] = 0.0F;
    double sum = 0;
    if (maximum != kNone) {
      if (sinks != nullptr) sum += std::exp(static_cast<double>(sinks[row]) - maximum);
      for (const auto& part : parts) {
        sum += std::exp(static_cast<double>(part.lse.data[row]) * kUnit - maximum);
      }
      for (const auto& part : parts) {
        const double weight =
            std::exp(static_cast<double>(part.lse.data[row]) * kUnit - maximum) / sum;
        if (weight == 0) continue;
        for (std::int64_t d = 0; d < size.dim; ++d) {
          o[d] += static_cast<float>(weight * static_cast<double>(part.o[row * size.dim + d]));
        }
      }
    }
    if (merged.lse.data == nullptr) continue;
    merged.lse.data[row] =
        static_cast<float>(maximum == kNone ? kNone : (maximum + std::log(sum)) / kUnit);
  }
}

}  // namespace kernelpath::kernels::cpu
