#pragma once

// One reader for each weight format: the values of a row as vectors of floats. A unit defines
// `Simd` before it includes this file; everything here has internal linkage (see matmul_tile.h).
//
// at(k) gives columns [k, k + kLanes), times the block's scale where kBlockScales; kFactor is left
// out of every value and applied to the finished sum. Weights are read ahead by kPrefetchBytes: the
// hardware's own prefetcher follows fewer streams than there are rows at once.

#include "base/float_types.h"
#include "kernels/ops.h"

#include <array>
#include <cstring>

namespace kernelpath::kernels::cpu {
namespace {  // NOLINT(cert-dcl59-cpp): of each unit its own, see above

constexpr std::int64_t kPrefetchBytes = 768;

template <class T>
inline T load_value(const std::byte* data, std::int64_t index) {
  T out;
  std::memcpy(&out, data + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return out;
}

struct E4m3Table {
  std::array<float, 256> values{};
  constexpr E4m3Table() {
    for (std::size_t code = 0; code < values.size(); ++code) {
      values[code] = e4m3_to_f32(static_cast<std::uint8_t>(code));
    }
  }
};
constexpr E4m3Table kE4m3;

// The scale of block `block` of a row of scales.
inline float read_scale(ScaleFormat format, const std::byte* scales, std::int64_t block) {
  switch (format) {
    case ScaleFormat::kNone:
      return 1.0F;
    case ScaleFormat::kF32:
      return load_value<float>(scales, block);
    case ScaleFormat::kBf16:
      return bf16_to_f32(load_value<std::uint16_t>(scales, block));
    case ScaleFormat::kF16:
      return Simd::f16(load_value<std::uint16_t>(scales, block));
    case ScaleFormat::kE4m3:
      return kE4m3.values[load_value<std::uint8_t>(scales, block)];
    case ScaleFormat::kE8m0:
      return e8m0_to_f32(load_value<std::uint8_t>(scales, block));
  }
  return 1.0F;
}

inline void prefetch(const std::byte* from) { __builtin_prefetch(from + kPrefetchBytes, 0, 0); }

// A row without scales of blocks.
struct PlainReader {
  static constexpr bool kBlockScales = false;
  static constexpr float kFactor = 1.0F;
  const std::byte* row = nullptr;

  PlainReader() = default;
  PlainReader(const WeightMatrix& m, std::int64_t r) : row(m.data + r * m.row_bytes) {}
};

struct F32Reader : PlainReader {
  using PlainReader::PlainReader;
  [[nodiscard]] Simd::Reg at(std::int64_t k) const {
    const std::byte* const from = row + k * 4;
    prefetch(from);
    return Simd::load(reinterpret_cast<const float*>(from));
  }
};

struct Bf16Reader : PlainReader {
  using PlainReader::PlainReader;
  [[nodiscard]] Simd::Reg at(std::int64_t k) const {
    const std::byte* const from = row + k * 2;
    prefetch(from);
    return Simd::from_bf16(from);
  }
};

struct F16Reader : PlainReader {
  using PlainReader::PlainReader;
  [[nodiscard]] Simd::Reg at(std::int64_t k) const {
    const std::byte* const from = row + k * 2;
    prefetch(from);
    return Simd::from_f16(from);
  }
};

struct Fp8Reader : PlainReader {
  static constexpr float kFactor = 256.0F;
  using PlainReader::PlainReader;
  [[nodiscard]] Simd::Reg at(std::int64_t k) const {
    const std::byte* const from = row + k;
    prefetch(from);
    return Simd::from_e4m3(from);
  }
};

// A row with a scale for every so many columns. A vector never crosses blocks: they are multiples
// of 16 columns, except the last one.
struct ScaledReader : PlainReader {
  static constexpr bool kBlockScales = true;
  const std::byte* scales = nullptr;
  ScaleFormat format = ScaleFormat::kNone;
  std::int64_t block_cols = 1;

  ScaledReader() = default;
  ScaledReader(const WeightMatrix& m, std::int64_t r)
      : PlainReader(m, r),
        scales(m.scales + r / m.block_rows * m.scale_row_bytes),
        format(m.scale_format),
        block_cols(m.block_cols) {}
};

struct Fp8BlockReader : ScaledReader {
  static constexpr float kFactor = 256.0F;
  using ScaledReader::ScaledReader;
  [[nodiscard]] Simd::Reg at(std::int64_t k) const {
    const std::byte* const from = row + k;
    prefetch(from);
    return Simd::mul(Simd::from_e4m3(from), read_scale(format, scales, k / block_cols));
  }
};

struct E2m1Reader : ScaledReader {
  static constexpr float kFactor = 0.5F;
  bool wide = false;  // blocks of 32 with e8m0 (mxfp4), else of 16 with e4m3 (nvfp4)

  E2m1Reader() = default;
  E2m1Reader(const WeightMatrix& m, std::int64_t r)
      : ScaledReader(m, r), wide(m.scale_format == ScaleFormat::kE8m0) {}
  [[nodiscard]] Simd::Reg at(std::int64_t k) const {
    const std::byte* const from = row + k / 2;
    prefetch(from);
    const float scale = wide ? e8m0_to_f32(load_value<std::uint8_t>(scales, k / 32))
                             : kE4m3.values[load_value<std::uint8_t>(scales, k / 16)];
    return Simd::mul(Simd::from_int8(Simd::double_e2m1(Simd::unpack_pairs(from))), scale);
  }
};

struct Q8Reader : ScaledReader {
  using ScaledReader::ScaledReader;
  [[nodiscard]] Simd::Reg at(std::int64_t k) const {
    const std::byte* const from = row + k;
    prefetch(from);
    const __m128i codes = Simd::kLanes == 16
                              ? _mm_loadu_si128(reinterpret_cast<const __m128i*>(from))
                              : _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
    return Simd::mul(Simd::from_int8(codes), Simd::f16(load_value<std::uint16_t>(scales, k / 32)));
  }
};

struct Q4Reader : ScaledReader {
  using ScaledReader::ScaledReader;
  [[nodiscard]] Simd::Reg at(std::int64_t k) const {
    const std::byte* const from = row + k / 32 * 16 + k % 16;
    prefetch(from);
    const __m128i codes = Simd::minus_eight(Simd::halves(from, k % 32 >= 16));
    return Simd::mul(Simd::from_int8(codes), Simd::f16(load_value<std::uint16_t>(scales, k / 32)));
  }
};

// Super-blocks of 256 columns in 144 bytes; see dequantize_columns.
struct Q4KReader : PlainReader {
  static constexpr bool kBlockScales = true;
  using PlainReader::PlainReader;
  [[nodiscard]] Simd::Reg at(std::int64_t k) const {
    const std::byte* const block = row + k / 256 * 144;
    const auto byte = [&](std::int64_t i) {
      return static_cast<unsigned>(load_value<std::uint8_t>(block, i));
    };
    const std::int64_t sub = k % 256 / 32;
    unsigned scale = 0;
    unsigned minimum = 0;
    if (sub < 4) {
      scale = byte(4 + sub) & 63U;
      minimum = byte(8 + sub) & 63U;
    } else {
      scale = (byte(8 + sub) & 15U) | (byte(sub) >> 6U << 4U);
      minimum = (byte(8 + sub) >> 4U) | (byte(4 + sub) >> 6U << 4U);
    }
    const std::byte* const codes = block + 16 + k % 256 / 64 * 32 + k % 32;
    prefetch(codes);
    const float d = Simd::f16(load_value<std::uint16_t>(block, 0)) * static_cast<float>(scale);
    const float low = Simd::f16(load_value<std::uint16_t>(block, 1)) * static_cast<float>(minimum);
    return Simd::scale_minus(Simd::from_int8(Simd::halves(codes, sub % 2 == 1)), d, low);
  }
};

}  // namespace
}  // namespace kernelpath::kernels::cpu
