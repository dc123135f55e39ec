#pragma once

// Matrix products for one instruction set. A unit defines `Simd` (kLanes floats) and a reader for
// each format, then includes this file: everything here has internal linkage, so that code compiled
// for one instruction set is never linked into another.
//
// Tile: kRowsAtOnce rows by up to kMaxTokens tokens, one vector accumulator each, over all columns:
// every output is the same sum in the same order whatever the tile. Bytes moved: the weights once
// per kTokenBlock tokens, x from cache. Limit to hit: read bandwidth for a few tokens (four weight
// streams a thread, prefetched), the FMA units for many.

#include "kernels/cpu/matmul.h"

#include <algorithm>
#include <array>

namespace kernelpath::kernels::cpu {
namespace {  // NOLINT(cert-dcl59-cpp): of each unit its own, see above

constexpr std::int64_t kRows = kRowsAtOnce;
// Tokens whose activations stay in the second-level cache while all rows pass by.
constexpr std::int64_t kTokenBlock = 48;
// The scale of a whole row, with what the reader leaves out.
template <class Reader>
float row_factor(const WeightMatrix& m, std::int64_t row) {
  const float factor = m.scale * Reader::kFactor;
  if (m.scale_format == ScaleFormat::kNone || Reader::kBlockScales) return factor;
  return factor * read_scale(m.scale_format, m.scales + row / m.block_rows * m.scale_row_bytes, 0);
}

// The last columns, fewer than kLanes, filled up with zeros.
struct Tail {
  std::array<float, Simd::kLanes> values{};
};

template <class Reader>
Tail weight_tail(const WeightMatrix& m, std::int64_t row, std::int64_t first) {
  Tail tail;
  dequantize_columns(m, row, first, m.cols - first, tail.values.data());
  // dequantize_columns applies every scale, and the finished sum is multiplied by the row's again.
  const float factor = row_factor<Reader>(m, row);
  for (float& value : tail.values) value = factor == 0.0F ? 0.0F : value / factor;
  return tail;
}

inline const float* x_row(const MatmulPart& part, std::int64_t i) {
  return part.x + (part.x_rows == nullptr ? i : part.x_rows[i]) * part.x_stride;
}

inline float* y_row(const MatmulPart& part, std::int64_t i) {
  return part.y + (part.y_rows == nullptr ? i : part.y_rows[i]) * part.y_stride;
}

template <class Reader, int Tokens>
using Sums = std::array<std::array<Simd::Reg, Tokens>, kRows>;

template <class Reader, int Tokens>
inline void add_tail(const MatmulPart& part, std::int64_t row, std::int64_t first,
                     const std::array<const float*, Tokens>& x, Sums<Reader, Tokens>& sums) {
  std::array<Simd::Reg, Tokens> last;
  for (int t = 0; t < Tokens; ++t) {
    Tail tail;
    std::copy(x[t] + first, x[t] + part.w.cols, tail.values.begin());
    last[t] = Simd::load(tail.values.data());
  }
  for (std::int64_t r = 0; r < kRows; ++r) {
    const Tail weights = weight_tail<Reader>(part.w, std::min(row + r, part.w.rows - 1), first);
    const Simd::Reg w = Simd::load(weights.values.data());
    for (int t = 0; t < Tokens; ++t) sums[r][t] = Simd::fma(w, last[t], sums[r][t]);
  }
}

// Rows past `row_end` repeat the last one and are not stored.
template <class Reader, int Tokens>
void tile(const MatmulPart& part, std::int64_t row, std::int64_t row_end, std::int64_t token) {
  std::array<Reader, kRows> w;
  for (std::int64_t r = 0; r < kRows; ++r) {
    w[r] = Reader(part.w, std::min(row + r, row_end - 1));
  }
  std::array<const float*, Tokens> x;
  for (int t = 0; t < Tokens; ++t) x[t] = x_row(part, token + t);
  Sums<Reader, Tokens> sums;
  for (auto& row_sums : sums) row_sums.fill(Simd::zero());
  const std::int64_t whole = part.w.cols / Simd::kLanes * Simd::kLanes;
  for (std::int64_t k = 0; k < whole; k += Simd::kLanes) {
    std::array<Simd::Reg, kRows> values;
#pragma GCC unroll 4
    for (std::int64_t r = 0; r < kRows; ++r) values[r] = w[r].at(k);
#pragma GCC unroll 8
    for (int t = 0; t < Tokens; ++t) {
      const Simd::Reg activations = Simd::load(x[t] + k);
#pragma GCC unroll 4
      for (std::int64_t r = 0; r < kRows; ++r) {
        sums[r][t] = Simd::fma(values[r], activations, sums[r][t]);
      }
    }
  }
  if (whole < part.w.cols) add_tail<Reader, Tokens>(part, row, whole, x, sums);
  for (std::int64_t r = 0; r < std::min(kRows, row_end - row); ++r) {
    const float factor = row_factor<Reader>(part.w, row + r);
    const float bias = part.bias == nullptr ? 0.0F : part.bias[row + r];
    for (int t = 0; t < Tokens; ++t) {
      y_row(part, token + t)[row + r] = Simd::sum(sums[r][t]) * factor + bias;
    }
  }
}

template <class Reader>
void tokens_of_rows(const MatmulPart& part, std::int64_t row, std::int64_t row_end,
                    std::int64_t token, std::int64_t token_end) {
  for (; token + Simd::kMaxTokens <= token_end; token += Simd::kMaxTokens) {
    tile<Reader, Simd::kMaxTokens>(part, row, row_end, token);
  }
  for (; token + 2 <= token_end; token += 2) tile<Reader, 2>(part, row, row_end, token);
  if (token < token_end) tile<Reader, 1>(part, row, row_end, token);
}

template <class Reader>
void rows_with(const MatmulPart& part, std::int64_t row_begin, std::int64_t row_end) {
  for (std::int64_t first = 0; first < part.n; first += kTokenBlock) {
    const std::int64_t last = std::min(first + kTokenBlock, part.n);
    for (std::int64_t row = row_begin; row < row_end; row += kRows) {
      tokens_of_rows<Reader>(part, row, row_end, first, last);
    }
  }
}

void matmul_rows_simd(const MatmulPart& part, std::int64_t row_begin, std::int64_t row_end) {
  switch (part.w.format) {
    case WeightFormat::kF32:
      return rows_with<F32Reader>(part, row_begin, row_end);
    case WeightFormat::kBf16:
      return rows_with<Bf16Reader>(part, row_begin, row_end);
    case WeightFormat::kF16:
      return rows_with<F16Reader>(part, row_begin, row_end);
    case WeightFormat::kFp8E4m3:
      if (part.w.scales_whole_rows()) return rows_with<Fp8Reader>(part, row_begin, row_end);
      return rows_with<Fp8BlockReader>(part, row_begin, row_end);
    case WeightFormat::kE2m1:
      return rows_with<E2m1Reader>(part, row_begin, row_end);
    case WeightFormat::kQ8_0:
      return rows_with<Q8Reader>(part, row_begin, row_end);
    case WeightFormat::kQ4_0:
      return rows_with<Q4Reader>(part, row_begin, row_end);
    case WeightFormat::kQ4K:
      return rows_with<Q4KReader>(part, row_begin, row_end);
  }
}

}  // namespace
}  // namespace kernelpath::kernels::cpu
