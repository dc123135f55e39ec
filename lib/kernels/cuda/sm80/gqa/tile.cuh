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
template <class Config, int Tiles>
using TileScores = float[Tiles][Config::kRowTiles][4];

template <class Config, int Tiles>
__device__ inline void renew_maximum(WarpState<Config>& state, const TileScores<Config, Tiles>& s) {
  state.unset = false;
#pragma unroll
  for (int n = 0; n < Config::kRowTiles; ++n) {
    float factor[2];
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      float largest = -INFINITY;
#pragma unroll
      for (int t = 0; t < Tiles; ++t) {
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
template <class Config, int Tiles>
__device__ inline void cap_scores(const WarpState<Config>& state, float softcap,
                                  TileScores<Config, Tiles>& s) {
  const float cap = softcap * kLog2E;
#pragma unroll
  for (int t = 0; t < Tiles; ++t) {
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
template <class Config, int Tiles>
__device__ inline bool exponents(const WarpState<Config>& state, const TileScores<Config, Tiles>& s,
                                 TileScores<Config, Tiles>& x) {
  float largest = -INFINITY;
#pragma unroll
  for (int t = 0; t < Tiles; ++t) {
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

// The weights of a tile as fragments of P^T, from their exponents; adds them to the sums.
template <class Config>
__device__ inline void weights_of(float (&x)[Config::kRowTiles][4], WarpState<Config>& state,
                                  std::uint32_t (&p)[Config::kRowTiles][2]) {
#pragma unroll
  for (int n = 0; n < Config::kRowTiles; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      x[n][i] = exp2_fast(x[n][i]);
      state.sum[n][i & 1] += x[n][i];
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      p[n][half] = transpose_matrix(pack_16<kUsesBf16<Config>>(x[n][half * 2], x[n][half * 2 + 1]));
    }
  }
}

// Scores, softmax and values of so many tiles. With Plain, all rows see all of their tokens, and
// scores have no cap.
template <class Config, int Tiles, bool Plain>
__device__ inline void attend_tiles(const DecodeKernelParams& params, const RequestPlan& request,
                                    const SegmentRows& rows, int token, TilePlace place, int lane,
                                    WarpState<Config>& state) {
  constexpr int kTileBytes = Config::kTileTokens * Config::kRowBytes;
  [[maybe_unused]] constexpr int kTileScales = Config::kTileTokens * Config::kScaleRowBytes;
  TileScores<Config, Tiles> s;
#pragma unroll
  for (int t = 0; t < Tiles; ++t) {
    if constexpr (kIsNvfp4<Config>) {
      score_codes<Config>(state, place.side + t * kTileBytes, place.scales + t * kTileScales, lane,
                          s[t]);
    } else {
      score_tile<Config>(state, place.side + t * kTileBytes, lane, s[t]);
    }
  }
  if constexpr (kIsNvfp4<Config>) ValueScales<Config, Tiles>::spread(place, lane);
  if constexpr (!Plain) {
    if (params.softcap > 0.0F) cap_scores<Config, Tiles>(state, params.softcap, s);
    const int end = token + Tiles * Config::kTileTokens;
    if (token < rows.seen_by_all.first || end > rows.seen_by_all.last) {
#pragma unroll
      for (int t = 0; t < Tiles; ++t) {
        mask_tile<Config>(params, request, rows, token + t * Config::kTileTokens, lane, s[t]);
      }
    }
  }
  TileScores<Config, Tiles> x;
  const bool high = exponents<Config, Tiles>(state, s, x);
  if (__any_sync(~0U, high) || state.unset) {
    renew_maximum<Config, Tiles>(state, s);
    exponents<Config, Tiles>(state, s, x);
  }
#pragma unroll
  for (int t = 0; t < Tiles; ++t) {
    std::uint32_t p[Config::kRowTiles][2];
    weights_of<Config>(x[t], state, p);
    if constexpr (kIsNvfp4<Config>) {
      weigh_codes<Config, Tiles>(state, place, t, lane, p);
    } else {
      weigh_tile<Config>(state, place.side + Config::kSideBytes + t * kTileBytes, lane, p);
    }
  }
}

// A step in the ring, whatever its tokens are. By few tiles with nvfp4: there it is the exception.
template <class Config>
__device__ inline void attend_step(const DecodeKernelParams& params, const RequestPlan& request,
                                   const SegmentRows& rows, int token, std::uint32_t stage,
                                   int lane, WarpState<Config>& state) {
  constexpr int kTiles = kIsNvfp4<Config> ? Config::kFewTiles : Config::kTokenTiles;
  constexpr int kTokens = kTiles * Config::kTileTokens;
  TilePlace place{.side = stage, .scales = stage + 2 * Config::kSideBytes};
#pragma unroll 1
  for (int i = 0; i < Config::kTokenTiles / kTiles; ++i) {
    attend_tiles<Config, kTiles, false>(params, request, rows, token, place, lane, state);
    token += kTokens;
    place.side += kTokens * Config::kRowBytes;
    place.scales += kTokens * Config::kScaleRowBytes;
  }
}

// A step whose tokens all rows see, of scores without a cap.
template <class Config>
__device__ inline void attend_plain_step(const DecodeKernelParams& params,
                                         const RequestPlan& request, std::uint32_t stage, int lane,
                                         WarpState<Config>& state) {
  attend_tiles<Config, Config::kTokenTiles, true>(
      params, request, {}, 0, {.side = stage, .scales = stage + 2 * Config::kSideBytes}, lane,
      state);
}

}  // namespace kernelpath::kernels::cuda::sm80
