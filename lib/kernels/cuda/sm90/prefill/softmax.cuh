#pragma once

#include "kernels/cuda/sm90/prefill/widen.cuh"
#include "kernels/cuda/sm90/prefill/work.cuh"

// From scores to weights, and what is written at the end. Each thread holds two rows of its warp's
// sixteen: lane / 4 and lane / 4 + 8.
namespace kernelpath::kernels::cuda::sm90 {

inline constexpr float kLog2E = 1.4426950408889634F;
inline constexpr float kLn2 = 0.6931471805599453F;
// Weights are relative to a maximum that is renewed when a score passes it by so much in base 2:
// most tiles need no rescaling of O.
inline constexpr float kMaximumLag = 8.0F;

struct Softmax {
  float maximum[2] = {-INFINITY, -INFINITY};
  float sum[2] = {0.0F, 0.0F};
  // From a dot product to a base-2 exponent; with a soft cap, to units of the cap.
  float scale[2] = {1.0F, 1.0F};

  // `row_scales`: what queries were divided by.
  template <class Config>
  __device__ void start(const PrefillKernelParams& params, const Work& work, float2 row_scales) {
    float score_scale = params.score_scale;
    if (params.k.head_scales != nullptr) score_scale *= params.k.head_scales[work.kv_head];
    if (Config::kNvfp4) score_scale *= kE2m1Factor;
    score_scale *= params.softcap > 0.0F ? 1.0F / params.softcap : kLog2E;
    scale[0] = score_scale * (Config::kBf16 ? 1.0F : row_scales.x);
    scale[1] = score_scale * (Config::kBf16 ? 1.0F : row_scales.y);
  }
};

template <class Config>
__device__ int row_of_thread() {
  const int thread = static_cast<int>(threadIdx.x) - Config::kLoaders;
  return thread / 32 * 16 + thread % 32 / 4;
}

template <class Config>
__device__ __forceinline__ void mask_scores(const PrefillKernelParams& params, const Work& work,
                                            int tile, float (&s)[Config::kKeys / 2]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const TokenRange seen = visible_tokens(
        params.shape, work.position_of(row_of_thread<Config>() + half * 8), work.seq_len);
#pragma unroll
    for (int j = 0; j < Config::kKeys / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int token = tile * Config::kKeys + j * 8 + static_cast<int>(threadIdx.x) % 4 * 2 + i;
        if (token < seen.first || token >= seen.last) s[j * 4 + half * 2 + i] = -INFINITY;
      }
    }
  }
}

template <int Count>
__device__ __forceinline__ void cap_scores(float softcap, const float (&to_cap)[2],
                                           float (&s)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    const float x = s[i] * to_cap[i / 2 % 2];
    const float e = sm80::exp2_fast(-2.0F * kLog2E * fabsf(x));
    s[i] = copysignf(softcap * __fdividef(1.0F - e, 1.0F + e), x);
  }
}

// Turns dot products into weights, and returns what O is to be multiplied with.
template <class Config>
__device__ __forceinline__ float2 soften(const PrefillKernelParams& params, const Work& work,
                                         int tile, float (&s)[Config::kKeys / 2], Softmax& state) {
  constexpr int kColumns = Config::kKeys / 8;
  const bool capped = params.softcap > 0.0F;
  if (capped) cap_scores(params.softcap, state.scale, s);
  const int token = tile * Config::kKeys;
  if (token < work.seen_by_all.first || token + Config::kKeys > work.seen_by_all.last) {
    mask_scores<Config>(params, work, tile, s);
  }
  float factor[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float scale = capped ? kLog2E : state.scale[half];
    float largest = -INFINITY;
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      largest = fmaxf(largest, fmaxf(s[j * 4 + half * 2], s[j * 4 + half * 2 + 1]));
    }
    largest = fmaxf(largest, __shfl_xor_sync(~0U, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(~0U, largest, 2));
    largest = fmaxf(largest * scale, state.maximum[half]);
    if (largest <= state.maximum[half] + kMaximumLag) largest = state.maximum[half];
    const float base = largest == -INFINITY ? 0.0F : largest;
    factor[half] = sm80::exp2_fast(state.maximum[half] - base);
    state.maximum[half] = largest;
    float sum = 0.0F;
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int at = j * 4 + half * 2 + i;
        s[at] = sm80::exp2_fast(fmaf(s[at], scale, -base));
        sum += s[at];
      }
    }
    state.sum[half] = state.sum[half] * factor[half] + sum;
  }
  return {factor[0], factor[1]};
}

// A row's sum and maximum over all lanes that hold it, its sink included, and the factor of O.
struct RowEnd {
  float scale = 0.0F;
  float lse = -INFINITY;
};
template <class Config>
__device__ __forceinline__ RowEnd end_row(const PrefillKernelParams& params, const Work& work,
                                          float maximum, float sum) {
  sum += __shfl_xor_sync(~0U, sum, 1);
  sum += __shfl_xor_sync(~0U, sum, 2);
  float factor = 1.0F;
  if (params.sinks != nullptr) {
    const float sink = params.sinks[work.head] * kLog2E;
    const float largest = fmaxf(sink, maximum);
    factor = maximum == -INFINITY ? 0.0F : sm80::exp2_fast(maximum - largest);
    sum = sum * factor + (sink == -INFINITY ? 0.0F : sm80::exp2_fast(sink - largest));
    maximum = largest;
  }
  RowEnd end;
  const bool seen = sum > 0.0F || sum != sum;  // a NaN is handed on
  if (!seen) return end;
  end.scale = params.v.scale * factor / sum;
  if (params.v.head_scales != nullptr) end.scale *= params.v.head_scales[work.kv_head];
  if (Config::kNvfp4) end.scale *= kE2m1Factor;
  end.lse = (maximum + sm80::log2_fast(sum)) * kLn2;
  return end;
}

template <class Config>
__device__ __forceinline__ void write_rows(const PrefillKernelParams& params, const Work& work,
                                           const Softmax& state,
                                           const float (&o)[Config::kDimV / 2]) {
  const bool bf16 = params.query_is_bf16 != 0;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const RowEnd end = end_row<Config>(params, work, state.maximum[half], state.sum[half]);
    const int row = work.first_query + row_of_thread<Config>() + half * 8;
    if (row >= work.num_queries) continue;
    const std::int64_t token = work.query_begin + static_cast<std::int64_t>(row);
    auto* const to = reinterpret_cast<std::uint32_t*>(
        params.o +
        (token * params.o_stride + static_cast<std::int64_t>(work.head) * params.v_head_dim) * 2);
#pragma unroll
    for (int j = 0; j < Config::kDimV / 8; ++j) {
      if (j * 8 >= params.v_head_dim) break;
      const float first = o[j * 4 + half * 2] * end.scale;
      const float second = o[j * 4 + half * 2 + 1] * end.scale;
      to[j * 4 + static_cast<int>(threadIdx.x) % 4] =
          bf16 ? sm80::pack_bf16(first, second) : sm80::pack_f16(first, second);
    }
    if (params.lse != nullptr && threadIdx.x % 4 == 0) {
      params.lse[token * params.num_heads + work.head] = end.lse;
    }
  }
}

}  // namespace kernelpath::kernels::cuda::sm90
