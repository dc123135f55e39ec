#pragma once

#include "kernels/cuda/sm80/gqa/tile.cuh"

// From the states of warps to outputs: warps merge through shared memory, and workers that share
// an item through memory, in the order of their tiles, so that equal inputs give equal bits.
namespace kernelpath::kernels::cuda::sm80 {

// Which rows and head a segment computes, and for which worker.
struct SegmentOutput {
  SegmentRows rows = {};
  int kv_head = 0;
  int query_begin = 0;
  int group = 1;
};

// An unnormalised row: sum of weights and weighted sum of values, relative to 2^maximum.
struct RowState {
  float maximum = -INFINITY;
  float sum = 0.0F;
};

__device__ inline float4 add_scaled(float4 to, float4 value, float factor) {
  return {to.x + value.x * factor, to.y + value.y * factor, to.z + value.z * factor,
          to.w + value.w * factor};
}

__device__ inline float relative_weight(float maximum, float largest) {
  return maximum == -INFINITY ? 0.0F : exp2_fast(maximum - largest);
}

// Writes four elements of an output row, and the lse with the first of them.
template <class Config>
__device__ inline void finish_row(const DecodeKernelParams& params, const SegmentOutput& out,
                                  int row, int element, RowState state, float4 value) {
  const int query_row = out.rows.row_begin + row;
  const std::int64_t token = out.query_begin + query_row / out.group;
  const int head = out.kv_head * out.group + query_row % out.group;
  float factor = 1.0F;
  if (params.sinks != nullptr) {
    const float sink = params.sinks[head] * kLog2E;
    const float largest = fmaxf(sink, state.maximum);
    factor = relative_weight(state.maximum, largest);
    state.sum = state.sum * factor + relative_weight(sink, largest);
    state.maximum = largest;
  }
  float scale = params.v.scale * factor;
  if (params.v.head_scales != nullptr) scale *= params.v.head_scales[out.kv_head];
  if constexpr (kIsNvfp4<Config>) scale *= kE2m1Factor;
  const bool seen = state.sum > 0.0F || state.sum != state.sum;  // a NaN is handed on
  scale = seen ? scale / state.sum : 0.0F;
  const float4 o = {value.x * scale, value.y * scale, value.z * scale, value.w * scale};
  const bool bf16 = params.query_is_bf16 != 0;
  const uint2 packed = bf16 ? uint2{pack_bf16(o.x, o.y), pack_bf16(o.z, o.w)}
                            : uint2{pack_f16(o.x, o.y), pack_f16(o.z, o.w)};
  const std::int64_t at =
      token * params.o_stride + static_cast<std::int64_t>(head) * params.v_head_dim + element;
  *reinterpret_cast<uint2*>(params.o + at * 2) = packed;
  if (element == 0 && params.lse != nullptr) {
    params.lse[token * params.num_heads + head] =
        seen ? (state.maximum + log2_fast(state.sum)) * kLn2 : -INFINITY;
  }
}

// One worker's part of a shared item.
template <class Config>
__device__ inline float* partial_values(const DecodeKernelParams& params, int slot, int row) {
  return params.partial_o + (static_cast<std::int64_t>(slot) * Config::kRows + row) * Config::kDim;
}

// The last worker to arrive merges all parts. Reads go to the L2, past what this SM may have
// cached.
template <class Config>
__device__ inline void merge_parts(const DecodeKernelParams& params, const SegmentOutput& out,
                                   const ItemOwners& owners) {
  const int vectors = params.v_head_dim / 4;
  for (int i = threadIdx.x; i < out.rows.rows * vectors; i += Config::kThreads) {
    const int row = i / vectors;
    const int element = i % vectors * 4;
    RowState total;
#pragma unroll 8
    for (int w = owners.first; w <= owners.last; ++w) {
      const int slot = partial_slot(w, w == owners.first);
      const float2 part = __ldcg(params.partial_state + slot * Config::kRows + row);
      total.maximum = fmaxf(total.maximum, part.x);
    }
    float4 value = {0.0F, 0.0F, 0.0F, 0.0F};
#pragma unroll 8
    for (int w = owners.first; w <= owners.last; ++w) {
      const int slot = partial_slot(w, w == owners.first);
      const float2 part = __ldcg(params.partial_state + slot * Config::kRows + row);
      const float4 values = __ldcg(
          reinterpret_cast<const float4*>(partial_values<Config>(params, slot, row) + element));
      const float weight = relative_weight(part.x, total.maximum);
      total.sum += part.y * weight;
      value = add_scaled(value, values, weight);
    }
    finish_row<Config>(params, out, row, element, total, value);
  }
}

template <class Config>
struct MergeMemory {
  float values[Config::kWarps][8][Config::kMergePitch];
  float2 states[Config::kWarps][Config::kRows];
  int last_to_arrive;
};

// Of 8 rows and kMergeDims elements that all warps have put into shared memory.
template <class Config>
__device__ inline void merge_block(const DecodeKernelParams& params, const SegmentOutput& out,
                                   const MergeMemory<Config>& memory, int row_tile, int first_dim,
                                   int slot) {
  constexpr int kVectors = Config::kMergeDims / 4;
  for (int i = threadIdx.x; i < 8 * kVectors; i += Config::kThreads) {
    const int row = row_tile * 8 + i / kVectors;
    const int inside = i % kVectors * 4;
    if (row >= out.rows.rows || first_dim + inside >= params.v_head_dim) continue;
    RowState total;
#pragma unroll
    for (int w = 0; w < Config::kWarps; ++w) {
      total.maximum = fmaxf(total.maximum, memory.states[w][row].x);
    }
    float4 value = {0.0F, 0.0F, 0.0F, 0.0F};
#pragma unroll
    for (int w = 0; w < Config::kWarps; ++w) {
      const float weight = relative_weight(memory.states[w][row].x, total.maximum);
      total.sum += memory.states[w][row].y * weight;
      value = add_scaled(
          value, *reinterpret_cast<const float4*>(&memory.values[w][i / kVectors][inside]), weight);
    }
    if (slot < 0) {
      finish_row<Config>(params, out, row, first_dim + inside, total, value);
      continue;
    }
    *reinterpret_cast<float4*>(partial_values<Config>(params, slot, row) + first_dim + inside) =
        value;
    if (first_dim + inside == 0) {
      params.partial_state[slot * Config::kRows + row] = {total.maximum, total.sum};
    }
  }
}

// Ends a segment: the outputs of its rows where it is a whole item or the last part of one to be
// done, else its part. All threads of the block call it.
template <class Config>
__device__ inline void finish_segment(const DecodeKernelParams& params, const Segment& segment,
                                      std::int64_t total, const SegmentOutput& out,
                                      WarpState<Config>& state, MergeMemory<Config>& memory) {
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int slot =
      segment.whole() ? -1 : partial_slot(static_cast<int>(blockIdx.x), segment.first == 0);
#pragma unroll
  for (int n = 0; n < Config::kRowTiles; ++n) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      float sum = state.sum[n][j];
#pragma unroll
      for (int step = 4; step < 32; step *= 2) sum += __shfl_xor_sync(~0U, sum, step);
      if (lane < 4) memory.states[warp][n * 8 + lane * 2 + j] = {state.maximum[n][j], sum};
    }
  }
#pragma unroll
  for (int n = 0; n < Config::kRowTiles; ++n) {
#pragma unroll
    for (int first = 0; first < Config::kDim; first += Config::kMergeDims) {
#pragma unroll
      for (int m = first / 16; m < (first + Config::kMergeDims) / 16; ++m) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int element = element_of<Config>(m, i / 2, lane / 4) - first;
          memory.values[warp][(lane & 3) * 2 + (i & 1)][element] = state.o[m][n][i];
        }
      }
      __syncthreads();
      merge_block<Config>(params, out, memory, n, first, slot);
      __syncthreads();
    }
  }
  if (slot < 0) return;
  const ItemOwners owners = item_owners(params.shape, segment, total);
  if (threadIdx.x == 0) {
    // The barrier above ordered the block's writes before this thread's fence, the fence orders
    // them before the count.
    __threadfence();
    const unsigned others = static_cast<unsigned>(owners.last - owners.first);
    // Wraps to 0 with the last arrival: the counter is ready for the next launch.
    memory.last_to_arrive = atomicInc(params.counters + owners.first, others) == others ? 1 : 0;
    __threadfence();
  }
  __syncthreads();
  if (memory.last_to_arrive != 0) merge_parts<Config>(params, out, owners);
}

}  // namespace kernelpath::kernels::cuda::sm80
