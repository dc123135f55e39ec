#pragma once

#include "kernels/cuda/sm80/gqa/merge.cuh"

// Decode attention over a paged cache, for devices from sm_80 on.
//
// Tile: 16 tokens a warp, 8 query rows an MMA column tile. Warps: 8 (4 where a step has 16 kB), one
// block per SM, persistent. Shared memory: each warp's own ring of `stages` steps, up to 192 kB in
// all, plus 34 kB for the merge. Bytes moved: K and V of the visible tokens once, Q, O, and
// 2 × workers partial rows. Limit: the rate of reading pages in random order.
// docs/kernels/gqa-decode.md has the arithmetic.
namespace kernelpath::kernels::cuda::sm80 {

template <class Config>
__device__ inline SegmentOutput output_of(const DecodeKernelParams& params,
                                          const Segment& segment) {
  const RequestPlan& request = segment.request;
  const int blocks = request.items / params.shape.num_kv_heads;
  SegmentOutput out;
  out.kv_head = segment.item / blocks;
  out.query_begin = request.query_begin;
  out.group = params.shape.group;
  out.rows.row_begin = segment.item % blocks * Config::kRows;
  out.rows.rows = min(Config::kRows, request.num_queries * out.group - out.rows.row_begin);
  const int first_query = out.rows.row_begin / out.group;
  const int last_query = (out.rows.row_begin + out.rows.rows - 1) / out.group;
  const int position = request.seq_len - request.num_queries;
  // Ranges grow with the position: what the first and the last row see, all rows between see.
  const TokenRange first = visible_tokens(params.shape, position + first_query, request.seq_len);
  const TokenRange last = visible_tokens(params.shape, position + last_query, request.seq_len);
  out.rows.seen_by_all = {last.first, first.last};
  return out;
}

// Fragments of Q^T in the type of the MMA, and what a dot product is multiplied with. For f16, rows
// are scaled to about 1 by a power of two: queries of bf16 may lie beyond f16's range.
template <class Config>
__device__ inline void load_queries(const DecodeKernelParams& params, const SegmentOutput& out,
                                    int lane, WarpState<Config>& state) {
  constexpr bool kBf16 = kUsesBf16<Config>;
  const bool bf16 = params.query_is_bf16 != 0;
  float score_scale = params.softmax_scale * params.k.scale;
  if (params.k.head_scales != nullptr) score_scale *= params.k.head_scales[out.kv_head];
  if constexpr (kIsNvfp4<Config>) score_scale *= kE2m1Factor;
  score_scale *= params.softcap > 0.0F ? 1.0F / params.softcap : kLog2E;
#pragma unroll
  for (int n = 0; n < Config::kRowTiles; ++n) {
    const int row = n * 8 + lane / 4;
    const int query_row = out.rows.row_begin + row;
    const std::int64_t token = out.query_begin + query_row / out.group;
    const int head = out.kv_head * out.group + query_row % out.group;
    const auto* from = reinterpret_cast<const std::uint16_t*>(params.q) + token * params.q_stride +
                       static_cast<std::int64_t>(head) * params.head_dim;
#pragma unroll
    for (int k = 0; k < WarpState<Config>::kDimTiles; ++k) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int2 element = query_elements<Config>(k, r, lane & 3);
        std::uint32_t pair = 0;
        if (row < out.rows.rows && element.y < params.head_dim) {
          if constexpr (kIsNvfp4<Config>) {
            pair = from[element.x] | static_cast<std::uint32_t>(from[element.y]) << 16;
          } else {
            pair = *reinterpret_cast<const std::uint32_t*>(from + element.x);
          }
        }
        state.q[k][n][r] = pair;
      }
    }
    float row_scale = 1.0F;
    const auto widen = [&](std::uint32_t pair) -> float2 {
      if (bf16) return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xFFFF0000U)};
      return __half22float2(*reinterpret_cast<const __half2*>(&pair));
    };
    if (!kBf16 && bf16) {
      float largest = 0.0F;
#pragma unroll
      for (int k = 0; k < WarpState<Config>::kDimTiles; ++k) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const float2 pair = widen(state.q[k][n][r]);
          largest = fmaxf(largest, fmaxf(fabsf(pair.x), fabsf(pair.y)));
        }
      }
      largest = fmaxf(largest, __shfl_xor_sync(~0U, largest, 1));
      largest = fmaxf(largest, __shfl_xor_sync(~0U, largest, 2));
      // The power of two at or below the largest; its inverse must be a float as well.
      const std::uint32_t exponent = __float_as_uint(largest) & 0x7F800000U;
      const std::uint32_t bounded = min(max(exponent, 0x01000000U), 0x7E000000U);
      row_scale = __uint_as_float(bounded);
    }
    if (kBf16 != bf16) {
      const float inverse = 1.0F / row_scale;
#pragma unroll
      for (int k = 0; k < WarpState<Config>::kDimTiles; ++k) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const float2 pair = widen(state.q[k][n][r]);
          state.q[k][n][r] = pack_16<kBf16>(pair.x * inverse, pair.y * inverse);
        }
      }
    }
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int column = (lane & 3) * 2 + j;
      state.scale[n][j] = score_scale * __shfl_sync(~0U, row_scale, column * 4);
    }
  }
}

// Chunks past the end of a row are never copied: they are zero from the start.
template <class Config>
__device__ inline void clear_ring(std::byte* ring, const DecodeKernelParams& params) {
  if (params.k.chunks == Config::kChunks && params.v.chunks == Config::kChunks) return;
  const int bytes = params.stages * Config::stage_bytes();
  for (int at = threadIdx.x * 16; at < bytes; at += Config::kThreads * 16) {
    *reinterpret_cast<uint4*>(ring + at) = uint4{0, 0, 0, 0};
  }
  __syncthreads();
}

template <class Config>
__global__ void __launch_bounds__(Config::kThreads, 1)
    decode_kernel(const __grid_constant__ DecodeKernelParams params) {
  extern __shared__ __align__(128) std::byte memory[];
  std::byte* const ring = memory;
  auto& merge =
      *reinterpret_cast<MergeMemory<Config>*>(memory + params.stages * Config::stage_bytes());
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  clear_ring<Config>(ring, params);

  const WorkerPlan plan = params.workers[blockIdx.x];
  Segment segment = plan.segment;
  Loader<Config> loader(params, segment, warp, lane);
  const std::uint32_t own_ring = shared_address(ring) + warp * params.stages * Config::kStepBytes;
  const std::uint32_t ring_end = own_ring + params.stages * Config::kStepBytes;
  const int ahead = params.stages - 1;
  std::uint32_t load_at = own_ring;
  for (int i = 0; i < ahead; ++i, load_at += Config::kStepBytes) loader.issue(load_at);

  WarpState<Config> state;
  std::uint32_t read_at = own_ring;
  int turn = 0;
  while (segment.valid()) {
    const SegmentSteps steps = steps_of<Config::kWarps>(params.shape, segment, warp, turn);
    const SegmentOutput out = output_of<Config>(params, segment);
    load_queries<Config>(params, out, lane, state);
    state.clear();
    for (int step = steps.begin; step < steps.last; step += Config::kWarps) {
      wait_copies(ahead - 1);
      // All lanes' copies of this step are visible, and all have read the step before, whose place
      // the next copies take.
      __syncwarp();
      loader.issue(load_at);
      load_at += Config::kStepBytes;
      if (load_at == ring_end) load_at = own_ring;
      attend_step<Config>(params, segment.request, out.rows, step * Config::kTokens, read_at, lane,
                          state);
      read_at += Config::kStepBytes;
      if (read_at == ring_end) read_at = own_ring;
    }
    finish_segment<Config>(params, segment, plan.total, out, state, merge);
    advance(params.shape, params.requests, segment);
  }
  wait_copies<0>();
}

template <attention::DataType Type, int Dim, int RowTiles>
cudaError_t launch_decode_kernel(const DecodeKernelParams& params, cudaStream_t stream) {
  using Config = DecodeConfig<Type, Dim, RowTiles>;
  static_assert(sizeof(MergeMemory<Config>) <= Config::kFixedBytes);
  const int bytes = params.stages * Config::stage_bytes() + Config::kFixedBytes;
  const cudaError_t status = cudaFuncSetAttribute(
      decode_kernel<Config>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (status != cudaSuccess) return status;
  decode_kernel<Config><<<params.shape.workers, Config::kThreads, bytes, stream>>>(params);
  return cudaGetLastError();
}

}  // namespace kernelpath::kernels::cuda::sm80
