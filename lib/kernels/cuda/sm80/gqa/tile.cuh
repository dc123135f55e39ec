#pragma once

#include "kernels/cuda/sm80/gqa/load.cuh"

// The arithmetic of one warp: scores, online softmax and weighted values of a step of 16 tokens.
//
// Everything is transposed: S^T = K Q^T and O^T = V^T P^T, so that tokens and head elements are the
// M of an MMA (16) and query rows its N (8). A group of four wastes half of the tensor core's work
// and not three quarters, and O takes half the registers.
namespace kernelpath::kernels::cuda::sm80 {

inline constexpr float kLog2E = 1.4426950408889634F;
inline constexpr float kLn2 = 0.6931471805599453F;

// e2m1 codes as f16 are short of this factor, which the f32 scales of scores and output carry: in
// f16 it would overflow together with block scales from 4 on.
inline constexpr float kE2m1Factor = 16384.0F;

template <class Config>
struct WarpState {
  static constexpr int kDimTiles = Config::kDim / 16;
  static constexpr int kRowTiles = Config::kRowTiles;
  // Fragments of Q^T: [step of 16 elements][row tile].
  std::uint32_t q[kDimTiles][kRowTiles][2];
  float o[kDimTiles][kRowTiles][4];
  // Of this lane's columns 2t and 2t + 1 of each row tile. The maximum may lag behind by
  // kMaximumLag; the sum is of this lane's tokens only.
  float maximum[kRowTiles][2];
  float sum[kRowTiles][2];
  float scale[kRowTiles][2];  // from dot product to base-2 exponent, or to softcap units

  __device__ void clear() {
#pragma unroll
    for (int n = 0; n < kRowTiles; ++n) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        maximum[n][j] = -INFINITY;
        sum[n][j] = 0.0F;
      }
#pragma unroll
      for (int m = 0; m < kDimTiles; ++m) {
#pragma unroll
        for (int i = 0; i < 4; ++i) o[m][n][i] = 0.0F;
      }
    }
  }
};

template <class Config>
inline constexpr bool kUsesBf16 = Config::kType == attention::DataType::kBf16;
template <class Config>
inline constexpr bool kIsNvfp4 = Config::kType == attention::DataType::kNvfp4;

// What is the same for all steps of a segment.
struct SegmentRows {
  int row_begin = 0;  // of the request's query rows
  int rows = 0;
  TokenRange seen_by_all = {};  // tokens of steps inside need no mask
};

// The element of a head in row `half` * 8 + c of the M-tile m of O^T: what ldmatrix and the
// conversions of each type make of the bytes of V.
template <class Config>
__device__ inline int element_of(int m, int half, int c) {
  if constexpr (kIsNvfp4<Config>) {
    return (m >> 1) * 32 + c * 4 + (m & 1) * 2 + half;
  } else if constexpr (Config::kRowBytes == Config::kDim) {
    return m * 16 + c * 2 + half;
  } else {
    return m * 16 + half * 8 + c;
  }
}

// The two elements of Q that stand in register `r` of the fragment of step k, lane group t.
template <class Config>
__device__ inline int2 query_elements(int k, int r, int t) {
  if constexpr (kIsNvfp4<Config>) {
    const int first = (k >> 1) * 32 + t * 8 + (k & 1) * 2 + r;
    return {first, first + 4};
  } else if constexpr (Config::kRowBytes == Config::kDim) {
    const int first = k * 16 + t * 4 + r * 2;
    return {first, first + 1};
  } else {
    const int first = k * 16 + r * 8 + t * 2;
    return {first, first + 1};
  }
}

// Four e4m3 (or e5m2) bytes as f16 pairs: of bytes 0, 1 and of bytes 2, 3.
template <class Config>
__device__ inline void widen_bytes(std::uint32_t bytes, std::uint32_t& low, std::uint32_t& high) {
  if constexpr (Config::kType == attention::DataType::kFp8E5m2) {
    low = __byte_perm(bytes, 0, 0x1404);
    high = __byte_perm(bytes, 0, 0x3424);
  } else {
    low = e4m3x2_to_f16x2(bytes & 0xFFFFU);
    high = e4m3x2_to_f16x2(bytes >> 16);
  }
}

// Eight e2m1 codes as f16 over kE2m1Factor: pair p holds codes p and p + 4.
__device__ inline void widen_codes(std::uint32_t codes, std::uint32_t scales,
                                   std::uint32_t (&out)[4]) {
  constexpr std::uint32_t kSign = 0x80008000U;
  constexpr std::uint32_t kMagnitude = 0x0E000E00U;
  out[0] = (codes << 12 & kSign) | (codes << 9 & kMagnitude);
  out[1] = (codes << 8 & kSign) | (codes << 5 & kMagnitude);
  out[2] = (codes << 4 & kSign) | (codes << 1 & kMagnitude);
  out[3] = (codes & kSign) | (codes >> 3 & kMagnitude);
#pragma unroll
  for (int p = 0; p < 4; ++p) out[p] = multiply_f16x2(out[p], scales);
}

// This lane's row of the four matrices {rows 0-7, rows 8-15} × {chunk 0, chunk 1} of a side.
template <class Config>
__device__ inline int matrix_offset(int lane) {
  return Swizzle<Config>::offset(lane & 15, lane >> 4);
}

// The block scales of two rows of 16 tokens at `address`, for the blocks 2i + odd of 4 chunks i.
template <class Config>
struct RowScales {
  static constexpr int kWords = Config::kScaleRowBytes / 4 > 0 ? Config::kScaleRowBytes / 4 : 1;
  std::uint32_t words[kWords];

  __device__ void load(std::uint32_t address) {
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      asm volatile("ld.shared.b32 %0, [%1];" : "=r"(words[i]) : "r"(address + i * 4) : "memory");
    }
  }
  // The code of block 2 * chunk + odd.
  __device__ std::uint32_t code(int chunk, int odd) const {
    return words[chunk / 2] >> (chunk % 2 * 16 + odd * 8) & 0xFFU;
  }
};

// Scores of a step: s[n] is the 16×8 tile of tokens and query rows, as dot products.
template <class Config>
__device__ inline void score_step(const WarpState<Config>& state, std::uint32_t stage, int lane,
                                  float (&s)[Config::kRowTiles][4]) {
  constexpr bool kBf16 = kUsesBf16<Config>;
  // Two chains of dependent MMAs where one row tile alone would wait for itself.
  constexpr int kChains = Config::kRowTiles == 1 ? 2 : 1;
  float sums[kChains][Config::kRowTiles][4] = {};
  const auto add = [&](int k, const std::uint32_t(&a)[4]) {
#pragma unroll
    for (int n = 0; n < Config::kRowTiles; ++n) {
      multiply_add<kBf16>(sums[k % kChains][n], a, state.q[k][n]);
    }
  };
  [[maybe_unused]] RowScales<Config> scales[2];
  if constexpr (kIsNvfp4<Config>) {
    const std::uint32_t base = stage + 2 * Config::kSideBytes;
    scales[0].load(base + (lane >> 2) * Config::kScaleRowBytes);
    scales[1].load(base + ((lane >> 2) + 8) * Config::kScaleRowBytes);
  }
  const std::uint32_t first = stage + matrix_offset<Config>(lane);
#pragma unroll
  for (int chunk = 0; chunk < Config::kChunks; chunk += 2) {
    std::uint32_t r[4];
    load_matrices(r, Swizzle<Config>::other_chunk(first, chunk));
    if constexpr (kIsNvfp4<Config>) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        std::uint32_t low[4];
        std::uint32_t high[4];
        const int odd = lane >> 1 & 1;
        widen_codes(r[2 * i], e4m3x2_to_f16x2(scales[0].code(chunk + i, odd) * 0x0101U), low);
        widen_codes(r[2 * i + 1], e4m3x2_to_f16x2(scales[1].code(chunk + i, odd) * 0x0101U), high);
        add((chunk + i) * 2, {low[0], high[0], low[1], high[1]});
        add((chunk + i) * 2 + 1, {low[2], high[2], low[3], high[3]});
      }
    } else if constexpr (Config::kRowBytes == Config::kDim) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        std::uint32_t a[4];
        widen_bytes<Config>(r[2 * i], a[0], a[2]);
        widen_bytes<Config>(r[2 * i + 1], a[1], a[3]);
        add(chunk + i, a);
      }
    } else {
      add(chunk / 2, r);
    }
  }
#pragma unroll
  for (int n = 0; n < Config::kRowTiles; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      s[n][i] = sums[0][n][i];
      if constexpr (kChains == 2) s[n][i] += sums[kChains - 1][n][i];
    }
  }
}

// O^T += V^T P^T for the weights p[n] (B fragments).
template <class Config>
__device__ inline void weigh_step(WarpState<Config>& state, std::uint32_t stage, int lane,
                                  const std::uint32_t (&p)[Config::kRowTiles][2]) {
  constexpr bool kBf16 = kUsesBf16<Config>;
  const std::uint32_t first = stage + Config::kSideBytes + matrix_offset<Config>(lane);
  const auto add = [&](int m, const std::uint32_t(&a)[4]) {
#pragma unroll
    for (int n = 0; n < Config::kRowTiles; ++n) multiply_add<kBf16>(state.o[m][n], a, p[n]);
  };
  [[maybe_unused]] RowScales<Config> scales[4];  // of tokens 2t, 2t + 1, 2t + 8, 2t + 9
  if constexpr (kIsNvfp4<Config>) {
    const std::uint32_t base = stage + 2 * Config::kSideBytes + Config::kScaleBytes;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int token = (lane & 3) * 2 + (i & 1) + (i >> 1) * 8;
      scales[i].load(base + token * Config::kScaleRowBytes);
    }
  }
#pragma unroll
  for (int chunk = 0; chunk < Config::kChunks; chunk += 2) {
    std::uint32_t r[4];
    load_matrices_transposed(r, Swizzle<Config>::other_chunk(first, chunk));
    if constexpr (kIsNvfp4<Config>) {
      const int odd = lane >> 4;  // elements 16 and up of the chunk's 32
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        std::uint32_t low[4];
        std::uint32_t high[4];
        const auto pair = [&](int token) {
          return e4m3x2_to_f16x2(scales[token].code(chunk + i, odd) |
                                 scales[token + 1].code(chunk + i, odd) << 8);
        };
        widen_codes(r[2 * i], pair(0), low);
        widen_codes(r[2 * i + 1], pair(2), high);
        add((chunk + i) * 2, {low[0], low[1], high[0], high[1]});
        add((chunk + i) * 2 + 1, {low[2], low[3], high[2], high[3]});
      }
    } else if constexpr (Config::kRowBytes == Config::kDim) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        std::uint32_t a[4];
        // Bytes come as (token, element) 00 01 10 11 and are wanted as 00 10 01 11.
        widen_bytes<Config>(__byte_perm(r[2 * i], 0, 0x3120), a[0], a[1]);
        widen_bytes<Config>(__byte_perm(r[2 * i + 1], 0, 0x3120), a[2], a[3]);
        add(chunk + i, a);
      }
    } else {
      add(chunk / 2, {r[0], r[2], r[1], r[3]});
    }
  }
}

// Sets to -inf the scores of tokens that a row does not see.
template <class Config>
__device__ inline void mask_step(const PlanShape& shape, const RequestPlan& request,
                                 const SegmentRows& rows, int token, int lane,
                                 float (&s)[Config::kRowTiles][4]) {
#pragma unroll
  for (int n = 0; n < Config::kRowTiles; ++n) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int row = rows.row_begin + n * 8 + (lane & 3) * 2 + j;
      const int position = request.seq_len - request.num_queries + row / shape.group;
      const TokenRange seen = visible_tokens(shape, position, request.seq_len);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int own = token + (lane >> 2) + half * 8;
        if (own < seen.first || own >= seen.last) s[n][half * 2 + j] = -INFINITY;
      }
    }
  }
}

// cap * tanh(x) in base-2 units, where x = score / cap.
__device__ inline float cap_score(float x, float cap_log2) {
  const float e = exp2_fast(-2.0F * kLog2E * fabsf(x));
  return copysignf(cap_log2 * __fdividef(1.0F - e, 1.0F + e), x);
}

// The maximum that weights are relative to is renewed only when a score passes it by 2^8: weights
// stay below 256, and most steps need neither its reduction nor a rescaling of O.
inline constexpr float kMaximumLag = 8.0F;

template <class Config>
__device__ inline void renew_maximum(WarpState<Config>& state,
                                     const float (&s)[Config::kRowTiles][4]) {
#pragma unroll
  for (int n = 0; n < Config::kRowTiles; ++n) {
    float factor[2];
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      float largest = fmaxf(s[n][j], s[n][2 + j]);
#pragma unroll
      for (int step = 4; step < 32; step *= 2) {
        largest = fmaxf(largest, __shfl_xor_sync(~0U, largest, step));
      }
      largest = fmaxf(largest, state.maximum[n][j]);
      // Nothing seen so far: the sums are 0, whatever the factor.
      factor[j] = largest == -INFINITY ? 1.0F : exp2_fast(state.maximum[n][j] - largest);
      state.maximum[n][j] = largest;
      state.sum[n][j] *= factor[j];
    }
#pragma unroll
    for (int m = 0; m < WarpState<Config>::kDimTiles; ++m) {
#pragma unroll
      for (int i = 0; i < 4; ++i) state.o[m][n][i] *= factor[i & 1];
    }
  }
}

template <class Config>
__device__ inline void attend_step(const DecodeKernelParams& params, const RequestPlan& request,
                                   const SegmentRows& rows, int token, std::uint32_t stage,
                                   int lane, WarpState<Config>& state) {
  float s[Config::kRowTiles][4];
  score_step<Config>(state, stage, lane, s);
  bool renew = false;
  const float cap = params.softcap * kLog2E;
#pragma unroll
  for (int n = 0; n < Config::kRowTiles; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      s[n][i] *= state.scale[n][i & 1];
      if (params.softcap > 0.0F) s[n][i] = cap_score(s[n][i], cap);
    }
  }
  if (token < rows.seen_by_all.first || token + Config::kTokens > rows.seen_by_all.last) {
    mask_step<Config>(params.shape, request, rows, token, lane, s);
  }
#pragma unroll
  for (int n = 0; n < Config::kRowTiles; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) renew = renew || s[n][i] > state.maximum[n][i & 1] + kMaximumLag;
  }
  if (__any_sync(~0U, renew)) renew_maximum<Config>(state, s);
  std::uint32_t p[Config::kRowTiles][2];
#pragma unroll
  for (int n = 0; n < Config::kRowTiles; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      // A row that has seen nothing has no maximum to subtract.
      const float base = state.maximum[n][i & 1] == -INFINITY ? 0.0F : state.maximum[n][i & 1];
      s[n][i] = exp2_fast(s[n][i] - base);
      state.sum[n][i & 1] += s[n][i];
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      p[n][half] = transpose_matrix(pack_16<kUsesBf16<Config>>(s[n][half * 2], s[n][half * 2 + 1]));
    }
  }
  weigh_step<Config>(state, stage, lane, p);
}

}  // namespace kernelpath::kernels::cuda::sm80
