#pragma once

#include "kernels/cuda/sm80/gqa/tile.cuh"

// From the states of warps to outputs: warps merge through shared memory, and workers that share
// an item through memory.
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

// Where an output row goes and what it is multiplied with: known before its values are.
struct RowTarget {
  std::byte* o = nullptr;
  float* lse = nullptr;
  float scale = 1.0F;
  float sink = -INFINITY;  // in base 2
};
template <class Config>
__device__ inline RowTarget row_target(const DecodeKernelParams& params, const SegmentOutput& out,
                                       int row, int element) {
  const QueryRow query = query_row(params, out, row);
  RowTarget to;
  to.o = params.o + 2 * (query.token * params.o_stride +
                         static_cast<std::int64_t>(query.head) * params.v_head_dim + element);
  if (element == 0 && params.lse != nullptr) {
    to.lse = params.lse + query.token * params.num_heads + query.head;
  }
  to.scale = params.v.scale;
  if (params.v.head_scales != nullptr) to.scale *= params.v.head_scales[out.kv_head];
  if constexpr (kIsNvfp4<Config>) to.scale *= kE2m1Factor;
  if (params.sinks != nullptr) to.sink = params.sinks[query.head] * kLog2E;
  return to;
}

// Writes N (two or four) adjacent elements of an output row, and the lse with the first of them.
template <int N>
__device__ inline void finish_row(const DecodeKernelParams& params, const RowTarget& to,
                                  RowState state, const float (&value)[N]) {
  float scale = to.scale;
  if (to.sink != -INFINITY) {
    const float largest = fmaxf(to.sink, state.maximum);
    const float factor = relative_weight(state.maximum, largest);
    scale *= factor;
    state.sum = state.sum * factor + relative_weight(to.sink, largest);
    state.maximum = largest;
  }
  const bool seen = state.sum > 0.0F || state.sum != state.sum;  // a NaN is handed on
  scale = seen ? __fdividef(scale, state.sum) : 0.0F;
  const bool bf16 = params.query_is_bf16 != 0;
  std::uint32_t packed[N / 2];
#pragma unroll
  for (int i = 0; i < N / 2; ++i) {
    const float low = value[2 * i] * scale;
    const float high = value[2 * i + 1] * scale;
    packed[i] = bf16 ? pack_bf16(low, high) : pack_f16(low, high);
  }
  if constexpr (N == 4) {
    *reinterpret_cast<uint2*>(to.o) = {packed[0], packed[1]};
  } else {
    *reinterpret_cast<std::uint32_t*>(to.o) = packed[0];
  }
  if (to.lse != nullptr) {
    *to.lse = seen ? (state.maximum + log2_fast(state.sum)) * kLn2 : -INFINITY;
  }
}

// One worker's part of a shared item: rows of values, and after each its state (maximum, sum). Each
// float has the mark of the launch beside it: a pair whose marks are right has arrived, and no
// fence, barrier or counter stands between the part and its reader.
__device__ inline std::uint64_t marked(float value, std::uint32_t mark) {
  return static_cast<std::uint64_t>(mark) << 32 | __float_as_uint(value);
}
__device__ inline MarkedPair marked_pair(float first, float second, std::uint32_t mark) {
  return {{marked(first, mark), marked(second, mark)}};
}
__device__ inline bool has_mark(const MarkedPair& pair, std::uint32_t mark) {
  return pair.words[0] >> 32 == mark && pair.words[1] >> 32 == mark;
}
__device__ inline float first_of(const MarkedPair& pair) {
  return __uint_as_float(static_cast<std::uint32_t>(pair.words[0]));
}
__device__ inline float second_of(const MarkedPair& pair) {
  return __uint_as_float(static_cast<std::uint32_t>(pair.words[1]));
}

template <class Config>
inline constexpr int kRowPairs = Config::kDim / 2 + 1;
template <class Config>
__device__ inline MarkedPair* partial_row(const DecodeKernelParams& params, int slot, int row) {
  return params.partials +
         (static_cast<std::int64_t>(slot) * Config::kRows + row) * kRowPairs<Config>;
}

// Loads what has not arrived of some parts' values and states until all of it has. All of it is
// under way together: a part after the other would take its latency each time.
template <int Parts>
__device__ inline void await_parts(const MarkedPair* const (&values_at)[Parts], int to_state,
                                   std::uint32_t mark, MarkedPair (&values)[Parts],
                                   MarkedPair (&states)[Parts]) {
  constexpr int kEager = 16;  // attempts, of an L2 latency each
  bool waits = true;
#pragma unroll 1
  for (int attempt = 0; waits; ++attempt) {
    if (attempt >= kEager) pause_briefly();
#pragma unroll
    for (int part = 0; part < Parts; ++part) {
      const bool missing = !(has_mark(values[part], mark) && has_mark(states[part], mark));
      load_marked_if(missing, values[part], values_at[part]);
      load_marked_if(missing, states[part], values_at[part] + to_state);
    }
    waits = false;
#pragma unroll
    for (int part = 0; part < Parts; ++part) {
      waits = waits || !(has_mark(values[part], mark) && has_mark(states[part], mark));
    }
  }
}

// An item of which this worker computed the last part: it merges all of them. It waits only for
// workers below it, which have been started before it and compute such parts first.
struct PendingItem {
  SegmentOutput out = {};
  ItemOwners owners = {};
};

// Merges the parts in the order of the keys, so that equal inputs give equal bits.
template <class Config>
__device__ inline void merge_parts(const DecodeKernelParams& params, const PendingItem& item,
                                   std::uint32_t mark) {
  constexpr int kAtOnce = Config::kDim > 128 ? 4 : 8;  // as registers allow
  const int pairs = params.v_head_dim / 2;
#pragma unroll 1
  for (int i = threadIdx.x; i < item.out.rows.rows * pairs; i += Config::kThreads) {
    const int row = i / pairs;
    const int pair = i % pairs;
    const RowTarget target = row_target<Config>(params, item.out, row, pair * 2);
    RowState total;
    float value[2] = {0.0F, 0.0F};
#pragma unroll 1
    for (int first = item.owners.first; first <= item.owners.last; first += kAtOnce) {
      MarkedPair states[kAtOnce];
      MarkedPair values[kAtOnce];
      const MarkedPair* from[kAtOnce];
#pragma unroll
      for (int part = 0; part < kAtOnce; ++part) {
        const int worker = first + part;
        const bool exists = worker <= item.owners.last;
        const int slot = partial_slot(exists ? worker : 0, worker == item.owners.first);
        from[part] = partial_row<Config>(params, slot, row) + pair;
        // The mark of no launch, or for a part that is not there an empty row that has arrived.
        values[part] = marked_pair(0.0F, 0.0F, exists ? mark - 1 : mark);
        states[part] = marked_pair(-INFINITY, 0.0F, exists ? mark - 1 : mark);
      }
      await_parts(from, Config::kDim / 2 - pair, mark, values, states);
      float largest = total.maximum;
#pragma unroll
      for (const MarkedPair& state : states) largest = fmaxf(largest, first_of(state));
      const float before = relative_weight(total.maximum, largest);
      total = {.maximum = largest, .sum = total.sum * before};
      value[0] *= before;
      value[1] *= before;
#pragma unroll
      for (int part = 0; part < kAtOnce; ++part) {
        const float weight = relative_weight(first_of(states[part]), largest);
        total.sum += second_of(states[part]) * weight;
        value[0] += first_of(values[part]) * weight;
        value[1] += second_of(values[part]) * weight;
      }
    }
    finish_row(params, target, total, value);
  }
}

// What the warps of a block hand each other. With two buffers a warp can write the next block of
// rows while others still read the one before; with one, it waits for them.
template <class Config>
struct MergeBuffer {
  float values[Config::kWarps][Config::kTileRows][Config::kMergePitch];
  float2 states[Config::kWarps][Config::kTileRows];
};

// Where a worker's part of a shared item goes.
struct PartialTarget {
  int slot = -1;  // below 0: the segment is a whole item
  std::uint32_t mark = 0;
};

// What the segments of a launch have in common for merging.
template <class Config>
struct MergeMemory {
  MergeBuffer<Config>* buffers = nullptr;
  PendingItem* pending = nullptr;  // in shared memory; written once, by the segment that ends one
  PlanLine line = {};              // of the plan
  std::uint32_t mark = 0;          // of this launch
  int turn = 0;                    // of the buffers
};

// Of a row tile and kMergeDims elements that all warps have put into shared memory: the outputs,
// or with slot >= 0 this worker's part.
template <class Config>
__device__ inline void merge_block(const DecodeKernelParams& params, const SegmentOutput& out,
                                   const MergeBuffer<Config>& buffer, int first_row, int first_dim,
                                   PartialTarget to) {
  constexpr int kVectors = Config::kMergeDims / 4;
#pragma unroll 1
  for (int i = threadIdx.x; i < Config::kTileRows * kVectors; i += Config::kThreads) {
    const int row = first_row + i / kVectors;
    const int element = first_dim + i % kVectors * 4;
    if (row >= out.rows.rows || element >= params.v_head_dim) continue;
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
      const auto* const own =
          reinterpret_cast<const float4*>(&buffer.values[w][i / kVectors][element - first_dim]);
      value = add_scaled(value, *own, weight);
    }
    if (to.slot < 0) {
      const float all[4] = {value.x, value.y, value.z, value.w};
      finish_row(params, row_target<Config>(params, out, row, element), total, all);
      continue;
    }
    MarkedPair* const part = partial_row<Config>(params, to.slot, row);
    store_marked(part + element / 2, marked_pair(value.x, value.y, to.mark));
    store_marked(part + element / 2 + 1, marked_pair(value.z, value.w, to.mark));
    if (element == 0) {
      store_marked(part + Config::kDim / 2, marked_pair(total.maximum, total.sum, to.mark));
    }
  }
}

// Puts what this warp has of a row tile and kMergeDims elements into the buffer.
template <class Config>
__device__ inline void share_state(const WarpState<Config>& state, int n, int first_dim, int lane,
                                   int warp, MergeBuffer<Config>& buffer) {
  if (lane < Config::kTileRows / 2) {
    buffer.states[warp][lane * 2] = {state.maximum[n][0], state.sum[n][0]};
    buffer.states[warp][lane * 2 + 1] = {state.maximum[n][1], state.sum[n][1]};
  }
  if (!has_values<Config>(lane)) return;
#pragma unroll
  for (int m = first_dim / 16; m < (first_dim + Config::kMergeDims) / 16; ++m) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int element = element_of<Config>(m, i / 2, lane / 4) - first_dim;
      const int row = row_of_column<Config>(0, (lane & 3) * 2 + (i & 1));
      buffer.values[warp][row][element] = state.o[m][n][i];
    }
  }
}

// Ends a segment: the outputs of its rows where it is a whole item, else its part, and in `pending`
// that this worker has the last one. All threads of the block call it. `turn`: of the buffers;
// changes.
template <class Config>
__device__ inline void finish_segment(const DecodeKernelParams& params, const Segment& segment,
                                      const SegmentOutput& out, WarpState<Config>& state,
                                      MergeMemory<Config>& memory) {
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const PartialTarget to = {
      .slot = segment.whole() ? -1 : partial_slot(static_cast<int>(blockIdx.x), segment.first == 0),
      .mark = memory.mark};
  if (threadIdx.x == 0 && segment.ends_item()) {
    *memory.pending = {.out = out, .owners = item_owners(params.shape, segment, memory.line)};
  }
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
      MergeBuffer<Config>& buffer = memory.buffers[memory.turn];
      share_state<Config>(state, n, first, lane, warp, buffer);
      __syncthreads();
      merge_block<Config>(params, out, buffer, n * Config::kTileRows, first, to);
      if (params.merge_buffers == 2) {
        memory.turn ^= 1;
      } else {
        __syncthreads();
      }
    }
  }
}

}  // namespace kernelpath::kernels::cuda::sm80
