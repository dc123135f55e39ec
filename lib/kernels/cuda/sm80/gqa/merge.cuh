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
};

// Where the rows of Q and O of a segment's row lie.
struct QueryRow {
  std::int64_t token = 0;
  int head = 0;
};
__device__ inline QueryRow query_row(const DecodeKernelParams& params, const SegmentOutput& out,
                                     int row) {
  const auto own = static_cast<std::uint32_t>(out.rows.row_begin + row);
  const std::uint32_t query = params.group.quotient(own);
  const std::uint32_t group = params.group.divisor;
  return {
      .token = out.query_begin + static_cast<std::int64_t>(query),
      .head = static_cast<int>(static_cast<unsigned>(out.kv_head) * group + own - query * group)};
}

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
  const QueryRow query = query_row(params, out, row);
  float factor = 1.0F;
  if (params.sinks != nullptr) {
    const float sink = params.sinks[query.head] * kLog2E;
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
  const std::int64_t at = query.token * params.o_stride +
                          static_cast<std::int64_t>(query.head) * params.v_head_dim + element;
  *reinterpret_cast<uint2*>(params.o + at * 2) = packed;
  if (element == 0 && params.lse != nullptr) {
    params.lse[query.token * params.num_heads + query.head] =
        seen ? (state.maximum + log2_fast(state.sum)) * kLn2 : -INFINITY;
  }
}

// One worker's part of a shared item.
template <class Config>
__device__ inline float* partial_values(const DecodeKernelParams& params, int slot, int row) {
  return params.partial_o + (static_cast<std::int64_t>(slot) * Config::kRows + row) * Config::kDim;
}

// The last worker to arrive merges all parts. Reads go to the L2, past what this SM may have
// cached, and those of many parts are under way together: a part after the other would take its
// latency each time.
template <class Config>
__device__ inline void merge_parts(const DecodeKernelParams& params, const SegmentOutput& out,
                                   const ItemOwners& owners) {
  constexpr int kAtOnce = 12;
  const int vectors = params.v_head_dim / 4;
#pragma unroll 1
  for (int i = threadIdx.x; i < out.rows.rows * vectors; i += Config::kThreads) {
    const int row = i / vectors;
    const int element = i % vectors * 4;
    RowState total;
    float4 value = {0.0F, 0.0F, 0.0F, 0.0F};
#pragma unroll 1
    for (int first = owners.first; first <= owners.last; first += kAtOnce) {
      float2 states[kAtOnce];
      float4 values[kAtOnce];
      float largest = total.maximum;
#pragma unroll
      for (int part = 0; part < kAtOnce; ++part) {
        const int worker = first + part;
        states[part] = {-INFINITY, 0.0F};
        values[part] = {0.0F, 0.0F, 0.0F, 0.0F};
        if (worker > owners.last) continue;
        const int slot = partial_slot(worker, worker == owners.first);
        states[part] = __ldcg(params.partial_state + slot * Config::kRows + row);
        values[part] = __ldcg(
            reinterpret_cast<const float4*>(partial_values<Config>(params, slot, row) + element));
      }
#pragma unroll
      for (const float2& state : states) largest = fmaxf(largest, state.x);
      const float before = relative_weight(total.maximum, largest);
      total = {.maximum = largest, .sum = total.sum * before};
      value = {value.x * before, value.y * before, value.z * before, value.w * before};
#pragma unroll
      for (int part = 0; part < kAtOnce; ++part) {
        const float weight = relative_weight(states[part].x, largest);
        total.sum += states[part].y * weight;
        value = add_scaled(value, values[part], weight);
      }
    }
    finish_row<Config>(params, out, row, element, total, value);
  }
}

// What the warps of a block hand each other. With two buffers a warp can write the next block of
// rows while others still read the one before; with one, it waits for them.
template <class Config>
struct MergeBuffer {
  float values[Config::kWarps][8][Config::kMergePitch];
  float2 states[Config::kWarps][8];
};

// Of 8 rows and kMergeDims elements that all warps have put into shared memory.
template <class Config>
__device__ inline void merge_block(const DecodeKernelParams& params, const SegmentOutput& out,
                                   const MergeBuffer<Config>& buffer, int first_row, int first_dim,
                                   int slot) {
  constexpr int kVectors = Config::kMergeDims / 4;
#pragma unroll 1
  for (int i = threadIdx.x; i < 8 * kVectors; i += Config::kThreads) {
    const int row = first_row + i / kVectors;
    const int inside = i % kVectors * 4;
    if (row >= out.rows.rows || first_dim + inside >= params.v_head_dim) continue;
    RowState total;
#pragma unroll
    for (int w = 0; w < Config::kWarps; ++w) {
      total.maximum = fmaxf(total.maximum, buffer.states[w][i / kVectors].x);
    }
    float4 value = {0.0F, 0.0F, 0.0F, 0.0F};
#pragma unroll
    for (int w = 0; w < Config::kWarps; ++w) {
      const float2 state = buffer.states[w][i / kVectors];
      const float weight = relative_weight(state.x, total.maximum);
      total.sum += state.y * weight;
      value = add_scaled(
          value, *reinterpret_cast<const float4*>(&buffer.values[w][i / kVectors][inside]), weight);
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

// Counts this worker's part of an item; whether it was the last. All threads of the block call it.
__device__ inline bool arrive_last(const DecodeKernelParams& params, const ItemOwners& owners) {
  // Orders the block's writes before the one thread's count, and its count before their reads.
  __syncthreads();
  bool last = false;
  if (threadIdx.x == 0) {
    const auto others = static_cast<unsigned>(owners.last - owners.first);
    // Wraps to 0 with the last arrival: the counter is ready for the next launch.
    last = count_arrival(params.counters + owners.first, others) == others;
  }
  return __syncthreads_or(last ? 1 : 0) != 0;
}

// Ends a segment: the outputs of its rows where it is a whole item or the last part of one to be
// done, else its part. All threads of the block call it. `turn`: of the buffers; changes.
template <class Config>
__device__ inline void finish_segment(const DecodeKernelParams& params, const Segment& segment,
                                      std::int64_t total, const SegmentOutput& out,
                                      WarpState<Config>& state, MergeBuffer<Config>* buffers,
                                      int& turn) {
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int slot =
      segment.whole() ? -1 : partial_slot(static_cast<int>(blockIdx.x), segment.first == 0);
#pragma unroll
  for (int n = 0; n < Config::kRowTiles; ++n) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
#pragma unroll
      for (int step = 4; step < 32; step *= 2) {
        state.sum[n][j] += __shfl_xor_sync(~0U, state.sum[n][j], step);
      }
    }
#pragma unroll
    for (int first = 0; first < Config::kDim; first += Config::kMergeDims) {
      MergeBuffer<Config>& buffer = buffers[turn];
      if (lane < 4) {
        buffer.states[warp][lane * 2] = {state.maximum[n][0], state.sum[n][0]};
        buffer.states[warp][lane * 2 + 1] = {state.maximum[n][1], state.sum[n][1]};
      }
#pragma unroll
      for (int m = first / 16; m < (first + Config::kMergeDims) / 16; ++m) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int element = element_of<Config>(m, i / 2, lane / 4) - first;
          buffer.values[warp][(lane & 3) * 2 + (i & 1)][element] = state.o[m][n][i];
        }
      }
      __syncthreads();
      merge_block<Config>(params, out, buffer, n * 8, first, slot);
      if (params.merge_buffers == 2) {
        turn ^= 1;
      } else {
        __syncthreads();
      }
    }
  }
  if (slot < 0) return;
  const ItemOwners owners = item_owners(params.shape, segment, total);
  if (arrive_last(params, owners)) merge_parts<Config>(params, out, owners);
}

}  // namespace kernelpath::kernels::cuda::sm80
