#pragma once

#include "kernels/cuda/sm80/gemv/kernel.h"
#include "kernels/cuda/sm80/gqa/ptx.cuh"

#include <cuda_bf16.h>

// How a piece (16 bytes) of two rows meets the activations of the same columns. A product of tensor
// cores sums over 16 columns in any order, as long as weights and activations have the same one:
// lane l holds a whole piece of the rows l / 4 and l / 4 + 8, and the activations of its columns
// for token l / 4, so that both are loaded as they lie.
namespace kernelpath::kernels::cuda::sm80 {

struct PiecePair {
  std::uint32_t first[4];   // of row lane / 4
  std::uint32_t second[4];  // of row lane / 4 + 8
};

template <WeightFormat Format>
struct GemvWeights;

// bf16 and f16: words of weights are operands as they are.
template <bool Bf16>
struct PlainWeights {
  static constexpr bool kBf16 = Bf16;
  static constexpr int kVectors = 1;  // of 8 activations for a piece
  static constexpr float kFinalScale = 1.0F;

  struct Scales {};
  static __device__ Scales load_scales(const GemvKernelParams& /*params*/, std::int64_t /*row*/,
                                       int /*step_piece*/, int /*column*/) {
    return {};
  }
  template <class Activations>
  static __device__ void multiply(const PiecePair& weights, const Scales& /*first*/,
                                  const Scales& /*second*/, const Activations& x, float (&sum)[4]) {
    const uint4 words = x(0);
    const std::uint32_t a0[4] = {weights.first[0], weights.second[0], weights.first[1],
                                 weights.second[1]};
    const std::uint32_t b0[2] = {words.x, words.y};
    multiply_add<kBf16>(sum, a0, b0);
    const std::uint32_t a1[4] = {weights.first[2], weights.second[2], weights.first[3],
                                 weights.second[3]};
    const std::uint32_t b1[2] = {words.z, words.w};
    multiply_add<kBf16>(sum, a1, b1);
  }
};

template <>
struct GemvWeights<WeightFormat::kBf16> : PlainWeights<true> {};
template <>
struct GemvWeights<WeightFormat::kF16> : PlainWeights<false> {};

// e4m3 becomes bf16 by way of f16 and float, all of them exact; NaN stays NaN. The four lanes of a
// row hold 64 columns, which share a scale: it multiplies their sum, of which each lane has others'
// tokens. So it is the scale of the first piece, also where a lane's own lies beyond the row.
template <>
struct GemvWeights<WeightFormat::kFp8E4m3> {
  static constexpr bool kBf16 = true;
  static constexpr int kVectors = 2;
  static constexpr float kFinalScale = 1.0F;

  using Scales = float;
  static __device__ Scales load_scales(const GemvKernelParams& params, std::int64_t row,
                                       int step_piece, int /*column*/) {
    if (params.scales == nullptr) return 1.0F;
    const auto block = params.block_rows.quotient(static_cast<std::uint32_t>(row));
    const std::byte* const at = params.scales + block * params.scale_row_bytes;
    // A turn's second step may lie beyond the row: its weights are zeros, and any scale will do.
    const int piece = min(step_piece, params.pieces - 1);
    const auto column = params.block_pieces.quotient(static_cast<std::uint32_t>(piece));
    return __ldg(reinterpret_cast<const float*>(at) + column);
  }
  static __device__ std::uint32_t bf16_of(std::uint32_t f16_pair) {
    const float2 pair = __half22float2(*reinterpret_cast<const __half2*>(&f16_pair));
    return pack_bf16(pair.x, pair.y);
  }
  static __device__ void widen(std::uint32_t word, std::uint32_t& low, std::uint32_t& high) {
    widen_e4m3(word, low, high);
    low = bf16_of(low);
    high = bf16_of(high);
  }
  template <class Activations>
  static __device__ void multiply(const PiecePair& weights, Scales first, Scales second,
                                  const Activations& x, float (&sum)[4]) {
    float part[4] = {};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      std::uint32_t a[4];
      widen(weights.first[i], a[0], a[2]);
      widen(weights.second[i], a[1], a[3]);
      const uint4 words = x(i / 2);
      const std::uint32_t b[2] = {i % 2 == 0 ? words.x : words.z, i % 2 == 0 ? words.y : words.w};
      multiply_add<true>(part, a, b);
    }
    sum[0] = fmaf(part[0], first, sum[0]);
    sum[1] = fmaf(part[1], first, sum[1]);
    sum[2] = fmaf(part[2], second, sum[2]);
    sum[3] = fmaf(part[3], second, sum[3]);
  }
};

// e2m1 times its block's e4m3 has 6 significant bits: exact in bf16. The bits of an e2m1 as the
// lowest exponent and highest mantissa bits of a bf16 are its value times 2^-126, so that the scale
// brings 2^118 and the finished sum 2^8: neither overflows. The nibbles i and i + 4 of a word lie
// 16 bits apart and make an operand; the activations follow that order.
template <>
struct GemvWeights<WeightFormat::kE2m1> {
  static constexpr bool kBf16 = true;
  static constexpr int kVectors = 4;
  static constexpr float kFinalScale = 256.0F;

  struct Scales {
    std::uint32_t low = 0;  // a bf16 pair of the scale of 16 columns
    std::uint32_t high = 0;
  };
  static __device__ Scales load_scales(const GemvKernelParams& params, std::int64_t row,
                                       int step_piece, int column) {
    const int piece = step_piece + column;
    if (piece >= params.pieces) return {};
    const std::byte* const at = params.scales + row * params.scale_row_bytes;
    const std::uint32_t codes = __ldg(reinterpret_cast<const std::uint16_t*>(at) + piece);
    std::uint32_t pair = 0;
    std::uint32_t unused = 0;
    widen_e4m3(codes, pair, unused);
    const float2 scales = __half22float2(*reinterpret_cast<const __half2*>(&pair));
    constexpr float kUp = 0x1p118F;
    return {.low = pack_bf16(scales.x * kUp, scales.x * kUp),
            .high = pack_bf16(scales.y * kUp, scales.y * kUp)};
  }
  // The nibbles I and I + 4 of a word, scaled.
  template <int I>
  static __device__ std::uint32_t pair_of(std::uint32_t word, std::uint32_t scale) {
    constexpr int kToSign = 12 - 4 * I;
    constexpr int kToMagnitude = 6 - 4 * I;
    const std::uint32_t magnitude =
        kToMagnitude >= 0 ? word << (kToMagnitude & 31) : word >> (-kToMagnitude & 31);
    const std::uint32_t bits = (word << kToSign & 0x80008000U) | (magnitude & 0x01C001C0U);
    const __nv_bfloat162 out = __hmul2(*reinterpret_cast<const __nv_bfloat162*>(&bits),
                                       *reinterpret_cast<const __nv_bfloat162*>(&scale));
    return *reinterpret_cast<const std::uint32_t*>(&out);
  }
  static __device__ void multiply_word(std::uint32_t first, std::uint32_t first_scale,
                                       std::uint32_t second, std::uint32_t second_scale,
                                       const uint4& x, float (&sum)[4]) {
    const std::uint32_t a0[4] = {pair_of<0>(first, first_scale), pair_of<0>(second, second_scale),
                                 pair_of<1>(first, first_scale), pair_of<1>(second, second_scale)};
    const std::uint32_t b0[2] = {__byte_perm(x.x, x.z, 0x5410), __byte_perm(x.x, x.z, 0x7632)};
    multiply_add<true>(sum, a0, b0);
    const std::uint32_t a1[4] = {pair_of<2>(first, first_scale), pair_of<2>(second, second_scale),
                                 pair_of<3>(first, first_scale), pair_of<3>(second, second_scale)};
    const std::uint32_t b1[2] = {__byte_perm(x.y, x.w, 0x5410), __byte_perm(x.y, x.w, 0x7632)};
    multiply_add<true>(sum, a1, b1);
  }
  template <class Activations>
  static __device__ void multiply(const PiecePair& weights, const Scales& first,
                                  const Scales& second, const Activations& x, float (&sum)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      multiply_word(weights.first[i], i < 2 ? first.low : first.high, weights.second[i],
                    i < 2 ? second.low : second.high, x(i), sum);
    }
  }
};

}  // namespace kernelpath::kernels::cuda::sm80
