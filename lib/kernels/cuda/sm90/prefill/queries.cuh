#pragma once

#include "kernels/cuda/sm90/prefill/barriers.cuh"
#include "kernels/cuda/sm90/prefill/work.cuh"

#include <cuda_fp16.h>

// How a warpgroup brings its 64 queries into shared memory: each warp the 16 that it will hold.
namespace kernelpath::kernels::cuda::sm90 {

struct QueryRows {
  const std::byte* first = nullptr;  // of this head
  std::int64_t stride_bytes = 0;
  int row = 0;    // of the warp's first query, in the tile
  int count = 0;  // of queries that there are from there on

  __device__ QueryRows(const PrefillKernelParams& params, const Work& work, int warp_row)
      : row(warp_row), count(work.num_queries - work.first_query - warp_row) {
    const std::int64_t token = work.query_begin + work.first_query + warp_row;
    stride_bytes = params.q_stride * 2;
    first = params.q + token * stride_bytes +
            static_cast<std::int64_t>(work.head) * params.head_dim * 2;
  }
};

// Of the type of the products already.
template <class Config>
__device__ __forceinline__ void copy_queries(const PrefillKernelParams& params,
                                             const QueryRows& rows, std::uint32_t q) {
  using Map = LaneMap<Config::kDimK / 8>;
  const LaneRows<Map> lane(static_cast<int>(threadIdx.x) % 32);
  const std::uint32_t to =
      q + panel_offset(Config::kQueryPanelBytes, rows.row + lane.row, lane.chunk);
#pragma unroll
  for (int pass = 0; pass < Map::kPasses; ++pass) {
    const int row = lane.row_of(pass);
    const bool is_there = row < rows.count;
    const std::byte* const from = rows.first + (is_there ? row : 0) * rows.stride_bytes;
#pragma unroll
    for (int each = 0; each < Map::kEach; ++each) {
      const int chunk = lane.chunk_of(each);
      const bool read = is_there && chunk * 8 < params.head_dim;
      sm80::copy_async_16_or_zero(LaneRows<Map>::move(to, Config::kQueryPanelBytes, pass, each),
                                  read ? from + chunk * 16 : params.q, read);
    }
  }
  sm80::commit_copies();
  sm80::wait_copies<0>();
}

__device__ __forceinline__ float2 widen_pair(std::uint32_t pair, bool bf16) {
  if (bf16) return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xFFFF0000U)};
  return __half22float2(*reinterpret_cast<const __half2*>(&pair));
}

// The power of two at or below the largest magnitude of a row of bf16, which its queries are
// divided by before they become f16: they may lie beyond its range.
__device__ __forceinline__ float row_scale_of(std::uint32_t largest) {
  const std::uint32_t exponent = largest & 0x7F800000U;
  if (exponent == 0) return 1.0F;
  // Its inverse must be a float as well.
  return __uint_as_float(min(max(exponent, 0x01000000U), 0x7E000000U));
}

// Of the other 16-bit type. Returns what the scores of this lane's two rows must be multiplied
// with.
template <class Config>
__device__ __forceinline__ float2 convert_queries(const PrefillKernelParams& params,
                                                  const QueryRows& rows, std::uint32_t q) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  std::uint32_t words[16][Config::kPanelsK];
#pragma unroll
  for (int row = 0; row < 16; ++row) {
#pragma unroll
    for (int panel = 0; panel < Config::kPanelsK; ++panel) {
      const int word = panel * 32 + lane;
      const bool read = row < rows.count && word * 2 < params.head_dim;
      words[row][panel] =
          read
              ? __ldg(reinterpret_cast<const std::uint32_t*>(rows.first + row * rows.stride_bytes) +
                      word)
              : 0;
    }
  }
  float2 scales = {1.0F, 1.0F};
#pragma unroll
  for (int row = 0; row < 16; ++row) {
    float scale = 1.0F;
    if constexpr (!Config::kBf16) {
      std::uint32_t largest = 0;
#pragma unroll
      for (int panel = 0; panel < Config::kPanelsK; ++panel) {
        const std::uint32_t word = words[row][panel] & 0x7FFF7FFFU;
        largest = max(largest, max(word << 16, word & 0xFFFF0000U));
      }
      scale = row_scale_of(__reduce_max_sync(~0U, largest));
      if (row == lane / 4) scales.x = scale;
      if (row == lane / 4 + 8) scales.y = scale;
    }
    const float inverse = 1.0F / scale;
#pragma unroll
    for (int panel = 0; panel < Config::kPanelsK; ++panel) {
      const float2 pair = widen_pair(words[row][panel], !Config::kBf16);
      const std::uint32_t to =
          q + panel_offset(Config::kQueryPanelBytes, rows.row + row, panel * 8 + lane / 4) +
          lane % 4 * 4;
      asm volatile("st.shared.b32 [%0], %1;" ::"r"(to),
                   "r"(sm80::pack_16<Config::kBf16>(pair.x * inverse, pair.y * inverse))
                   : "memory");
    }
  }
  return scales;
}

// Queries of this warpgroup, ready for the tensor cores when it returns. `q`: of the block's tile.
template <class Config>
__device__ __forceinline__ float2 load_queries(const PrefillKernelParams& params, const Work& work,
                                               std::uint32_t q) {
  const int warp = (static_cast<int>(threadIdx.x) - Config::kLoaders) / 32;
  const QueryRows rows(params, work, warp * 16);
  float2 scales = {1.0F, 1.0F};
  if ((params.query_is_bf16 != 0) == Config::kBf16) {
    copy_queries<Config>(params, rows, q);
  } else {
    scales = convert_queries<Config>(params, rows, q);
  }
  publish_shared();
  sync_threads(1 + warp / 4, 128);
  return scales;
}

}  // namespace kernelpath::kernels::cuda::sm90
