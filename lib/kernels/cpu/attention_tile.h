#pragma once

#include "kernels/cpu/attention_unit.h"

#include <cstring>

// Attention over one tile of keys for any vector type; included by one unit per instruction set.
// Everything is in an unnamed namespace, so that no function is shared between units.
//
// Keys: blocks of `kLanes` tokens, their rows widened to float once for all query rows (in place
// where they are floats); one accumulator a token, reduced together. Softmax: one maximum and one
// sum a tile, no rescaling inside it. Values: blocks of kWideTokens, eight accumulators a row, the
// tokens in order. Bytes moved: each row of K and V once for a block of query rows; the limit is
// the read bandwidth for groups of up to about 8 query heads in bf16, the FMA rate above.
//
// `Simd` has: Reg, kLanes, load, store, set, zero, fma, mul, add, max, sub, at_least (mask), and
// widen_<type> of one register's worth of elements; see avx2/attention.cpp.
namespace kernelpath::kernels::cpu {
namespace {  // NOLINT(cert-dcl59-cpp): of each unit its own, see above

using attention::DataType;

constexpr float kMinusInfinity = -__builtin_inff();
constexpr std::int64_t kNvfp4Run = attention::kNvfp4Block;

constexpr std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
constexpr std::int64_t larger(std::int64_t a, std::int64_t b) { return a > b ? a : b; }

// exp(x) by 2^n * exp(r), |r| <= ln2 / 2; the relative error is below 2e-7. Below -87 it is 0,
// above 88 the value at 88. NaN stays NaN.
template <class Simd>
typename Simd::Reg exp_of(typename Simd::Reg x) {
  using Reg = typename Simd::Reg;
  // The limit stands first: the instructions give the second operand where one is NaN.
  const Reg clamped = Simd::min(Simd::set(88.0F), Simd::max(Simd::set(-88.0F), x));
  const Reg n = Simd::round(Simd::mul(clamped, Simd::set(1.44269504088896341F)));
  Reg r = Simd::fma(n, Simd::set(-0.693359375F), clamped);
  r = Simd::fma(n, Simd::set(2.12194440e-4F), r);
  Reg p = Simd::set(1.9875691500e-4F);
  p = Simd::fma(p, r, Simd::set(1.3981999507e-3F));
  p = Simd::fma(p, r, Simd::set(8.3334519073e-3F));
  p = Simd::fma(p, r, Simd::set(4.1665795894e-2F));
  p = Simd::fma(p, r, Simd::set(1.6666665459e-1F));
  p = Simd::fma(p, r, Simd::set(5.0000001201e-1F));
  p = Simd::fma(Simd::mul(p, r), r, Simd::add(r, Simd::set(1.0F)));
  return Simd::zero_below(x, Simd::set(-87.0F), Simd::scale_by_power(p, n));
}

// cap * tanh(x / cap).
template <class Simd>
typename Simd::Reg capped(typename Simd::Reg x, float cap) {
  using Reg = typename Simd::Reg;
  const Reg e = exp_of<Simd>(Simd::mul(x, Simd::set(2.0F / cap)));
  const Reg one = Simd::set(1.0F);
  const Reg tanh = Simd::sub(one, Simd::div(Simd::set(2.0F), Simd::add(e, one)));
  return Simd::mul(tanh, Simd::set(cap));
}

// One row of `dim` stored values as floats, zeros behind them up to a whole register.
template <class Simd, DataType Type>
void widen_row(const std::byte* data, const std::byte* scales, std::int64_t dim, float* out) {
  constexpr std::int64_t kLanes = Simd::kLanes;
  if constexpr (Type == DataType::kNvfp4) {
    for (std::int64_t i = 0; i < dim; i += kNvfp4Run) {
      Simd::widen_nvfp4(data + i / 2, scales + i / kNvfp4Run, out + i);
    }
  } else {
    constexpr std::int64_t kBytes = attention::bits_of(Type) / 8;
    std::int64_t i = 0;
    for (; i + kLanes <= dim; i += kLanes) {
      Simd::store(out + i, Simd::template widen<Type>(data + i * kBytes));
    }
    if (i < dim) {
      std::byte rest[kMaxLanes * sizeof(float)] = {};
      __builtin_memcpy(rest, data + i * kBytes, static_cast<std::size_t>((dim - i) * kBytes));
      Simd::store(out + i, Simd::template widen<Type>(rest));
    }
  }
}

using WidenRow = void (*)(const std::byte* data, const std::byte* scales, std::int64_t dim,
                          float* out);

template <class Simd>
WidenRow widen_row_of(DataType type) {
  switch (type) {
    case DataType::kF32:
      return widen_row<Simd, DataType::kF32>;
    case DataType::kBf16:
      return widen_row<Simd, DataType::kBf16>;
    case DataType::kF16:
      return widen_row<Simd, DataType::kF16>;
    case DataType::kFp8E4m3:
      return widen_row<Simd, DataType::kFp8E4m3>;
    case DataType::kFp8E5m2:
      return widen_row<Simd, DataType::kFp8E5m2>;
    case DataType::kNvfp4:
      return widen_row<Simd, DataType::kNvfp4>;
  }
  return nullptr;
}

// Asks for rows ahead of their use, a line at a time between the arithmetic: the processor waits as
// soon as it has asked for more lines than it can have under way (16 or so).
class Ahead {
 public:
  Ahead(const TileRows& rows, std::int64_t first, std::int64_t last)
      : data_(rows.data), token_(first), last_(larger(first, last)), bytes_(rows.row_bytes) {}

  // Lines for each of `times` calls of ask(), so that all are asked for.
  void spread_over(std::int64_t times) {
    const std::int64_t lines = (last_ - token_) * ((bytes_ + kLine - 1) / kLine);
    at_once_ = times > 0 ? (lines + times - 1) / times : lines;
  }
  void ask() {
    for (std::int64_t i = 0; i < at_once_ && token_ < last_; ++i) {
      __builtin_prefetch(data_[token_] + offset_);
      offset_ += kLine;
      if (offset_ < bytes_) continue;
      offset_ = 0;
      ++token_;
    }
  }

 private:
  static constexpr std::int64_t kLine = 64;
  const std::byte* const* data_;
  std::int64_t token_;
  std::int64_t last_;
  std::int64_t bytes_;
  std::int64_t offset_ = 0;
  std::int64_t at_once_ = 1;
};

// Float rows of the tokens [first, last): where they are stored, or widened into `wide`.
template <class Simd>
void float_rows(const TileRows& rows, std::int64_t first, std::int64_t last, float* wide,
                const float** out) {
  const bool in_place = rows.type == DataType::kF32 && rows.dim % Simd::kLanes == 0;
  const WidenRow widen = widen_row_of<Simd>(rows.type);
  for (std::int64_t t = first; t < last; ++t) {
    if (in_place) {
      out[t - first] = reinterpret_cast<const float*>(rows.data[t]);
      continue;
    }
    float* row = wide + (t - first) * rows.stride;
    widen(rows.data[t], rows.scales == nullptr ? nullptr : rows.scales[t], rows.dim, row);
    out[t - first] = row;
  }
}

// scores[row, column of t] = q[row] . k[t] for a block of kLanes tokens.
template <class Simd>
void score_block(const TileJob& job, const float* const* k_rows, std::int64_t column,
                 Ahead& ahead) {
  using Reg = typename Simd::Reg;
  constexpr int kLanes = Simd::kLanes;
  for (std::int64_t row = 0; row < job.rows; ++row) {
    const float* q = job.q + row * job.k.stride;
    Reg sums[kLanes];
    for (int t = 0; t < kLanes; ++t) sums[t] = Simd::zero();
    for (std::int64_t d = 0; d < job.k.dim; d += kLanes) {
      ahead.ask();
      const Reg part = Simd::load(q + d);
#pragma GCC unroll 16
      for (int t = 0; t < kLanes; ++t) {
        sums[t] = Simd::fma(part, Simd::load(k_rows[t] + d), sums[t]);
      }
    }
    Simd::store(job.scores + row * kScoreStride + column, Simd::sum_each(sums));
  }
}

template <class Simd>
void score_tile(const TileJob& job) {
  constexpr int kLanes = Simd::kLanes;
  const float* rows[kLanes];
  for (std::int64_t t = 0; t < job.tokens; t += kLanes) {
    const std::int64_t last = smaller(t + kLanes, job.tokens);
    // The next keys, or the first values.
    Ahead ahead = last < job.tokens ? Ahead(job.k, last, smaller(last + kLanes, job.tokens))
                                    : Ahead(job.v, 0, smaller(kWideTokens, job.tokens));
    ahead.spread_over(job.rows * ((job.k.dim + kLanes - 1) / kLanes));
    float_rows<Simd>(job.k, t, last, job.wide, rows);
    // A short block repeats its last token; those columns are in no row's range.
    for (std::int64_t i = last - t; i < kLanes; ++i) rows[i] = rows[last - t - 1];
    score_block<Simd>(job, rows, job.first_column + t, ahead);
  }
}

// Scores of a row -> probabilities relative to the row's maximum in this tile. Columns outside the
// range are set, not added to, so that nothing that a score holds there gets through.
template <class Simd>
void soften_row(const TileJob& job, std::int64_t row) {
  using Reg = typename Simd::Reg;
  constexpr std::int64_t kLanes = Simd::kLanes;
  const TokenRange range = job.ranges[row];
  float* scores = job.scores + row * kScoreStride;
  job.maximum[row] = kMinusInfinity;
  job.sum[row] = 0.0F;
  if (range.first >= range.last) return;
  const std::int64_t first = job.first_column + range.first;
  const std::int64_t last = job.first_column + range.last;
  const std::int64_t begin = first / kLanes * kLanes;
  const std::int64_t end = (last + kLanes - 1) / kLanes * kLanes;
  const Reg scale = Simd::set(job.scale);
  Reg maximum = Simd::set(kMinusInfinity);
  for (std::int64_t column = begin; column < end; column += kLanes) {
    Reg s = Simd::mul(Simd::load(scores + column), scale);
    if (job.softcap > 0.0F) s = capped<Simd>(s, job.softcap);
    s = Simd::inside(s, first - column, last - column, kMinusInfinity);
    Simd::store(scores + column, s);
    maximum = Simd::max(maximum, s);
  }
  job.maximum[row] = Simd::max_of(maximum);
  // Scores of -inf alone (infinite inputs) must not become -inf - -inf.
  const Reg highest = Simd::set(job.maximum[row] == kMinusInfinity ? 0.0F : job.maximum[row]);
  Reg sum = Simd::zero();
  for (std::int64_t column = begin; column < end; column += kLanes) {
    const Reg p = exp_of<Simd>(Simd::sub(Simd::load(scores + column), highest));
    Simd::store(scores + column, p);
    sum = Simd::add(sum, p);
  }
  job.sum[row] = Simd::sum_of(sum);
}

// Values of a block of tokens as floats, and a query row's weights of them.
struct ValueBlock {
  const float* p = nullptr;            // [tokens]
  const float* const* rows = nullptr;  // [tokens]
  Ahead* ahead = nullptr;              // to the next block
};

// acc[0, Regs * kLanes) += Σ p[t] * rows[t] over the tokens [first, last).
template <class Simd, int Regs>
void add_values(float* acc, const ValueBlock& block, std::int64_t offset, TokenRange tokens) {
  using Reg = typename Simd::Reg;
  Reg sums[Regs];
  for (int i = 0; i < Regs; ++i) sums[i] = Simd::load(acc + i * Simd::kLanes);
  for (std::int32_t t = tokens.first; t < tokens.last; ++t) {
    block.ahead->ask();
    const Reg weight = Simd::set(block.p[t]);
    const float* row = block.rows[t] + offset;
#pragma GCC unroll 8
    for (int i = 0; i < Regs; ++i) {
      sums[i] = Simd::fma(weight, Simd::load(row + i * Simd::kLanes), sums[i]);
    }
  }
  for (int i = 0; i < Regs; ++i) Simd::store(acc + i * Simd::kLanes, sums[i]);
}

template <class Simd>
void add_value_row(float* acc, const ValueBlock& block, std::int64_t dim, TokenRange tokens) {
  constexpr std::int64_t kLanes = Simd::kLanes;
  const std::int64_t width = (dim + kLanes - 1) / kLanes * kLanes;
  std::int64_t d = 0;
  for (; d + 8 * kLanes <= width; d += 8 * kLanes) {
    add_values<Simd, 8>(acc + d, block, d, tokens);
  }
  for (; d + 4 * kLanes <= width; d += 4 * kLanes) {
    add_values<Simd, 4>(acc + d, block, d, tokens);
  }
  for (; d < width; d += kLanes) add_values<Simd, 1>(acc + d, block, d, tokens);
}

template <class Simd>
void value_tile(const TileJob& job) {
  const std::int64_t stride = job.v.stride;
  for (std::int64_t i = 0; i < job.rows * stride; ++i) job.acc[i] = 0.0F;
  const float* rows[kWideTokens];
  for (std::int64_t t = 0; t < job.tokens; t += kWideTokens) {
    const std::int64_t last = smaller(t + kWideTokens, job.tokens);
    Ahead ahead(job.v, last, smaller(last + kWideTokens, job.tokens));
    ahead.spread_over(job.rows * (last - t));
    float_rows<Simd>(job.v, t, last, job.wide, rows);
    for (std::int64_t row = 0; row < job.rows; ++row) {
      const TokenRange range = job.ranges[row];
      const TokenRange tokens{.first = static_cast<std::int32_t>(larger(range.first, t) - t),
                              .last = static_cast<std::int32_t>(smaller(range.last, last) - t)};
      if (tokens.first >= tokens.last) continue;
      const ValueBlock block{.p = job.scores + row * kScoreStride + job.first_column + t,
                             .rows = rows,
                             .ahead = &ahead};
      add_value_row<Simd>(job.acc + row * stride, block, job.v.dim, tokens);
    }
  }
}

template <class Simd>
void attention_tile(const TileJob& job) {
  score_tile<Simd>(job);
  for (std::int64_t row = 0; row < job.rows; ++row) soften_row<Simd>(job, row);
  value_tile<Simd>(job);
}

template <class Simd>
void rescale_add(float* acc, float scale, const float* add, float add_scale, std::int64_t dim) {
  const typename Simd::Reg a = Simd::set(scale);
  const typename Simd::Reg b = Simd::set(add_scale);
  for (std::int64_t d = 0; d < dim; d += Simd::kLanes) {
    Simd::store(acc + d, Simd::fma(a, Simd::load(acc + d), Simd::mul(b, Simd::load(add + d))));
  }
}

}  // namespace
}  // namespace kernelpath::kernels::cpu
