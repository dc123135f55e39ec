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
  float base[kRowTiles][2];  // the maximum, or 0 where no token has been seen
  float sum[kRowTiles][2];
  float scale[kRowTiles][2];      // from a score to a base-2 exponent
  float cap_scale[kRowTiles][2];  // with a soft cap: from a dot product to units of the cap
  bool unset;                     // some row of this warp has no maximum

  __device__ void clear() {
    unset = true;
#pragma unroll
    for (int n = 0; n < kRowTiles; ++n) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        maximum[n][j] = -INFINITY;
        base[n][j] = 0.0F;
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
    return (m >> 1) * 32 + c * 4 + (m & 1) + half * 2;
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
    const int first = (k >> 1) * 32 + t * 8 + (k & 1) + r * 4;
    return {first, first + 2};
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
    widen_e5m2(bytes, low, high);
  } else {
    widen_e4m3(bytes, low, high);
  }
}

// Eight e2m1 codes, times their block scales, as f16 over kE2m1Factor. Pairs of codes (0, 2), (4,
// 6), (1, 3) and (5, 7): codes become bytes of e5m2, whose bits are an f16's upper ones.
__device__ inline void widen_codes(std::uint32_t codes, std::uint32_t scales,
                                   std::uint32_t (&out)[4]) {
  constexpr std::uint32_t kSign = 0x80808080U;
  constexpr std::uint32_t kMagnitude = 0x0E0E0E0EU;
  const std::uint32_t even = (codes << 4 & kSign) | (codes << 1 & kMagnitude);
  const std::uint32_t odd = (codes & kSign) | (codes >> 3 & kMagnitude);
  widen_e5m2(even, out[0], out[1]);
  widen_e5m2(odd, out[2], out[3]);
#pragma unroll
  for (int p = 0; p < 4; ++p) out[p] = multiply_f16x2(out[p], scales);
}

// This lane's row of the four matrices {rows 0-7, rows 8-15} × {chunk 0, chunk 1} of a side.
template <class Config>
__device__ inline int matrix_offset(int lane) {
  return Swizzle<Config>::offset(lane & 15, lane >> 4);
}

// The block scales of one row, four blocks to a word.
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
};

// Of the blocks 2i + odd of the chunks i = 2w and 2w + 1 in the words w of two rows: the scales of
// the first row and of the second as f16 pairs (first, second), for each of the two chunks.
__device__ inline void pair_scales(std::uint32_t first, std::uint32_t second, int odd,
                                   std::uint32_t& even_chunk, std::uint32_t& odd_chunk) {
  // Bytes odd and odd + 2 of each word, those of the same chunk side by side.
  const std::uint32_t bytes = __byte_perm(first, second, odd != 0 ? 0x7351 : 0x6240);
  widen_e4m3(bytes, even_chunk, odd_chunk);
}

// Scores of 16 tokens whose K begins at `side`: s[n] is the 16×8 tile of tokens and query rows, as
// dot products. `scales`: of the same tokens (nvfp4).
template <class Config>
__device__ inline void score_tile(const WarpState<Config>& state, std::uint32_t side,
                                  std::uint32_t scale_rows, int lane,
                                  float (&s)[Config::kRowTiles][4]) {
  constexpr bool kBf16 = kUsesBf16<Config>;
  // Two chains of dependent MMAs where one row tile alone would wait for itself.
  constexpr int kChains = Config::kRowTiles * Config::kTokenTiles == 1 ? 2 : 1;
  float sums[kChains][Config::kRowTiles][4] = {};
  const auto add = [&](int k, const std::uint32_t(&a)[4]) {
#pragma unroll
    for (int n = 0; n < Config::kRowTiles; ++n) {
      multiply_add<kBf16>(sums[k % kChains][n], a, state.q[k][n]);
    }
  };
  [[maybe_unused]] RowScales<Config> scales[2];
  if constexpr (kIsNvfp4<Config>) {
    scales[0].load(scale_rows + (lane >> 2) * Config::kScaleRowBytes);
    scales[1].load(scale_rows + ((lane >> 2) + 8) * Config::kScaleRowBytes);
  }
  const std::uint32_t first = side + matrix_offset<Config>(lane);
#pragma unroll
  for (int chunk = 0; chunk < Config::kChunks; chunk += 2) {
    std::uint32_t r[4];
    load_matrices(r, Swizzle<Config>::other_chunk(first, chunk));
    if constexpr (kIsNvfp4<Config>) {
      const int odd = lane >> 1 & 1;
      std::uint32_t of_row[2][2];  // [row][chunk], doubled
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        const std::uint32_t word = scales[row].words[chunk / 2];
        pair_scales(word, word, odd, of_row[row][0], of_row[row][1]);
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        std::uint32_t low[4];
        std::uint32_t high[4];
        widen_codes(r[2 * i], of_row[0][i], low);
        widen_codes(r[2 * i + 1], of_row[1][i], high);
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

// O^T += V^T P^T for 16 tokens whose V begins at `side`, with the weights p[n] (B fragments).
template <class Config>
__device__ inline void weigh_tile(WarpState<Config>& state, std::uint32_t side,
                                  std::uint32_t scale_rows, int lane,
                                  const std::uint32_t (&p)[Config::kRowTiles][2]) {
  constexpr bool kBf16 = kUsesBf16<Config>;
  const auto add = [&](int m, const std::uint32_t(&a)[4]) {
#pragma unroll
    for (int n = 0; n < Config::kRowTiles; ++n) multiply_add<kBf16>(state.o[m][n], a, p[n]);
  };
  [[maybe_unused]] RowScales<Config> scales[4];  // of tokens 2t, 2t + 1, 2t + 8, 2t + 9
  if constexpr (kIsNvfp4<Config>) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int token = (lane & 3) * 2 + (i & 1) + (i >> 1) * 8;
      scales[i].load(scale_rows + token * Config::kScaleRowBytes);
    }
  }
  const std::uint32_t first = side + matrix_offset<Config>(lane);
#pragma unroll
  for (int chunk = 0; chunk < Config::kChunks; chunk += 2) {
    std::uint32_t r[4];
    load_matrices_transposed(r, Swizzle<Config>::other_chunk(first, chunk));
    if constexpr (kIsNvfp4<Config>) {
      const int odd = lane >> 4;    // elements 16 and up of the chunk's 32
      std::uint32_t of_pair[2][2];  // [tokens 2t, 2t + 1 or 2t + 8, 2t + 9][chunk]
#pragma unroll
      for (int pair = 0; pair < 2; ++pair) {
        pair_scales(scales[2 * pair].words[chunk / 2], scales[2 * pair + 1].words[chunk / 2], odd,
                    of_pair[pair][0], of_pair[pair][1]);
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        std::uint32_t low[4];
        std::uint32_t high[4];
        // Bytes come as (token, pair of elements) 00 01 10 11 and are wanted as 00 10 01 11.
        widen_codes(__byte_perm(r[2 * i], 0, 0x3120), of_pair[0][i], low);
        widen_codes(__byte_perm(r[2 * i + 1], 0, 0x3120), of_pair[1][i], high);
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
__device__ inline void mask_tile(const DecodeKernelParams& params, const RequestPlan& request,
                                 const SegmentRows& rows, int token, int lane,
                                 float (&s)[Config::kRowTiles][4]) {
#pragma unroll
  for (int n = 0; n < Config::kRowTiles; ++n) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int row = rows.row_begin + n * 8 + (lane & 3) * 2 + j;
      const int position = request.seq_len - request.num_queries +
                           static_cast<int>(params.group.quotient(static_cast<std::uint32_t>(row)));
      const TokenRange seen = visible_tokens(params.shape, position, request.seq_len);
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
using StepScores = float[Config::kTokenTiles][Config::kRowTiles][4];

template <class Config>
__device__ inline void renew_maximum(WarpState<Config>& state, const StepScores<Config>& s) {
  state.unset = false;
#pragma unroll
  for (int n = 0; n < Config::kRowTiles; ++n) {
    float factor[2];
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      float largest = -INFINITY;
#pragma unroll
      for (int t = 0; t < Config::kTokenTiles; ++t) {
        largest = fmaxf(largest, fmaxf(s[t][n][j], s[t][n][2 + j]));
      }
#pragma unroll
      for (int step = 4; step < 32; step *= 2) {
        largest = fmaxf(largest, __shfl_xor_sync(~0U, largest, step));
      }
      largest = fmaxf(largest * state.scale[n][j], state.maximum[n][j]);
      // Nothing seen so far: the sums are 0, whatever the factor.
      factor[j] = largest == -INFINITY ? 1.0F : exp2_fast(state.maximum[n][j] - largest);
      state.maximum[n][j] = largest;
      state.base[n][j] = largest == -INFINITY ? 0.0F : largest;
      state.unset = state.unset || largest == -INFINITY;
      state.sum[n][j] *= factor[j];
    }
#pragma unroll
    for (int m = 0; m < WarpState<Config>::kDimTiles; ++m) {
#pragma unroll
      for (int i = 0; i < 4; ++i) state.o[m][n][i] *= factor[i & 1];
    }
  }
  state.unset = __any_sync(~0U, state.unset);
}

// Caps the scores, which become base-2 exponents; state.scale is 1 from then on.
template <class Config>
__device__ inline void cap_scores(const WarpState<Config>& state, float softcap,
                                  StepScores<Config>& s) {
  const float cap = softcap * kLog2E;
#pragma unroll
  for (int t = 0; t < Config::kTokenTiles; ++t) {
#pragma unroll
    for (int n = 0; n < Config::kRowTiles; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        s[t][n][i] = cap_score(s[t][n][i] * state.cap_scale[n][i & 1], cap);
      }
    }
  }
}

// The exponents of all weights, and whether one of this lane's is too large.
template <class Config>
__device__ inline bool exponents(const WarpState<Config>& state, const StepScores<Config>& s,
                                 StepScores<Config>& x) {
  float largest = -INFINITY;
#pragma unroll
  for (int t = 0; t < Config::kTokenTiles; ++t) {
#pragma unroll
    for (int n = 0; n < Config::kRowTiles; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        x[t][n][i] = fmaf(s[t][n][i], state.scale[n][i & 1], -state.base[n][i & 1]);
        largest = fmaxf(largest, x[t][n][i]);
      }
    }
  }
  return largest > kMaximumLag;
}

template <class Config>
__device__ inline void attend_step(const DecodeKernelParams& params, const RequestPlan& request,
                                   const SegmentRows& rows, int token, std::uint32_t stage,
                                   int lane, WarpState<Config>& state) {
  constexpr int kTileBytes = Config::kTileTokens * Config::kRowBytes;
  constexpr int kTileScales = Config::kTileTokens * Config::kScaleRowBytes;
  const std::uint32_t scales = stage + 2 * Config::kSideBytes;
  StepScores<Config> s;
#pragma unroll
  for (int t = 0; t < Config::kTokenTiles; ++t) {
    score_tile<Config>(state, stage + t * kTileBytes, scales + t * kTileScales, lane, s[t]);
  }
  if (params.softcap > 0.0F) cap_scores<Config>(state, params.softcap, s);
  if (token < rows.seen_by_all.first || token + Config::kTokens > rows.seen_by_all.last) {
#pragma unroll
    for (int t = 0; t < Config::kTokenTiles; ++t) {
      mask_tile<Config>(params, request, rows, token + t * Config::kTileTokens, lane, s[t]);
    }
  }
  StepScores<Config> x;
  const bool high = exponents<Config>(state, s, x);
  if (__any_sync(~0U, high) || state.unset) {
    renew_maximum<Config>(state, s);
    exponents<Config>(state, s, x);
  }
#pragma unroll
  for (int t = 0; t < Config::kTokenTiles; ++t) {
    std::uint32_t p[Config::kRowTiles][2];
#pragma unroll
    for (int n = 0; n < Config::kRowTiles; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        x[t][n][i] = exp2_fast(x[t][n][i]);
        state.sum[n][i & 1] += x[t][n][i];
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        p[n][half] =
            transpose_matrix(pack_16<kUsesBf16<Config>>(x[t][n][half * 2], x[t][n][half * 2 + 1]));
      }
    }
    weigh_tile<Config>(state, stage + Config::kSideBytes + t * kTileBytes,
                       scales + Config::kScaleBytes + t * kTileScales, lane, p);
  }
}

}  // namespace kernelpath::kernels::cuda::sm80
