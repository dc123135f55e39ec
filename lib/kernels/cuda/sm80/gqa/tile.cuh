#pragma once

#include "kernels/cuda/sm80/gqa/nvfp4.cuh"

// The arithmetic of one warp: scores, online softmax and weighted values of a step of 16 tokens.
//
// Everything is transposed: S^T = K Q^T and O^T = V^T P^T, so that tokens and head elements are the
// M of an MMA (16) and query rows its N (8). A group of four wastes half of the tensor core's work
// and not three quarters, and O takes half the registers.
namespace kernelpath::kernels::cuda::sm80 {

// Four e4m3 (or e5m2) bytes as f16 pairs: of bytes 0, 1 and of bytes 2, 3.
template <class Config>
__device__ inline void widen_bytes(std::uint32_t bytes, std::uint32_t& low, std::uint32_t& high) {
  if constexpr (Config::kType == attention::DataType::kFp8E5m2) {
    widen_e5m2(bytes, low, high);
  } else {
    widen_e4m3(bytes, low, high);
  }
}

// Scores of 16 tokens whose K begins at `side`: s[n] is the 16×8 tile of tokens and query rows, as
// dot products.
template <class Config>
__device__ inline void score_tile(const WarpState<Config>& state, std::uint32_t side, int lane,
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
  const std::uint32_t first = side + matrix_offset<Config>(lane);
#pragma unroll
  for (int chunk = 0; chunk < Config::kChunks; chunk += 2) {
    std::uint32_t r[4];
    load_matrices(r, Swizzle<Config>::other_chunk(first, chunk));
    if constexpr (Config::kRowBytes == Config::kDim) {
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
__device__ inline void weigh_tile(WarpState<Config>& state, std::uint32_t side, int lane,
                                  const std::uint32_t (&p)[Config::kRowTiles][2]) {
  constexpr bool kBf16 = kUsesBf16<Config>;
  const auto add = [&](int m, const std::uint32_t(&a)[4]) {
#pragma unroll
    for (int n = 0; n < Config::kRowTiles; ++n) multiply_add<kBf16>(state.o[m][n], a, p[n]);
  };
  const std::uint32_t first = side + matrix_offset<Config>(lane);
#pragma unroll
  for (int chunk = 0; chunk < Config::kChunks; chunk += 2) {
    std::uint32_t r[4];
    load_matrices_transposed(r, Swizzle<Config>::other_chunk(first, chunk));
    if constexpr (Config::kRowBytes == Config::kDim) {
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
      const int row = rows.row_begin + row_of_column<Config>(n, (lane & 3) * 2 + j);
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

// The maximum that weights are relative to is renewed only when a score passes it by Config::kLag:
// weights stay below 256, and most steps need neither its reduction nor a rescaling of O.
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
      largest = fmaxf(fmaf(largest, state.scale[n][j], Config::kHeadroom), state.maximum[n][j]);
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
  return largest > Config::kLag;
}

template <class Config>
__device__ inline void attend_step(const DecodeKernelParams& params, const RequestPlan& request,
                                   const SegmentRows& rows, int token, std::uint32_t stage,
                                   int lane, WarpState<Config>& state) {
  constexpr int kTileBytes = Config::kTileTokens * Config::kRowBytes;
  [[maybe_unused]] constexpr int kTileScales = Config::kTileTokens * Config::kScaleRowBytes;
  [[maybe_unused]] const std::uint32_t scales = stage + 2 * Config::kSideBytes;
  StepScores<Config> s;
#pragma unroll
  for (int t = 0; t < Config::kTokenTiles; ++t) {
    if constexpr (kIsNvfp4<Config>) {
      score_codes<Config>(state, stage + t * kTileBytes, scales + t * kTileScales, lane, s[t]);
    } else {
      score_tile<Config>(state, stage + t * kTileBytes, lane, s[t]);
    }
  }
  if constexpr (kIsNvfp4<Config>) ValueScales<Config>::spread(stage, lane);
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
    if constexpr (kIsNvfp4<Config>) {
      weigh_codes<Config>(state, stage, t, lane, p);
    } else {
      weigh_tile<Config>(state, stage + Config::kSideBytes + t * kTileBytes, lane, p);
    }
  }
}

}  // namespace kernelpath::kernels::cuda::sm80
