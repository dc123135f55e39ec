#pragma once

#include "kernels/cuda/sm80/gqa/launch.cuh"
#include "kernels/cuda/sm80/gqa/merge.cuh"

#include <cstddef>
#include <cstring>

// Decode attention over a paged cache, for devices from sm_80 on.
//
// Tile: 16 to 64 tokens a warp (8 kB of K and V), 8 query rows an MMA column tile. Warps: 4 or 8,
// one block per SM, persistent. Shared memory: each warp's own ring of two steps, 128 kB in all,
// plus 17 to 67 kB for the merge. Bytes moved: K and V of the visible tokens once, Q, O, and 2 ×
// workers partial rows. Limit: the rate of reading pages in random order.
// docs/kernels/gqa-decode.md has the arithmetic.
namespace kernelpath::kernels::cuda::sm80 {

template <class Config>
__device__ inline SegmentOutput output_of(const DecodeKernelParams& params,
                                          const Segment& segment) {
  const RequestPlan& request = segment.request;
  SegmentOutput out;
  out.kv_head = segment.kv_head();
  out.query_begin = request.query_begin;
  out.rows.row_begin = segment.block() * Config::kRows;
  out.rows.rows = min(Config::kRows, request.num_queries * params.shape.group - out.rows.row_begin);
  const int first_query = params.group.quotient(out.rows.row_begin);
  const int last_query = params.group.quotient(out.rows.row_begin + out.rows.rows - 1);
  const int position = request.seq_len - request.num_queries;
  // Ranges grow with the position: what the first and the last row see, all rows between see.
  const TokenRange first = visible_tokens(params.shape, position + first_query, request.seq_len);
  const TokenRange last = visible_tokens(params.shape, position + last_query, request.seq_len);
  out.rows.seen_by_all = {last.first, first.last};
  return out;
}

// Fragments of Q^T as they are stored; prepare_queries() makes them ready. Apart, so that the reads
// run while the item before is merged.
template <class Config>
__device__ inline void fetch_queries(const DecodeKernelParams& params, const SegmentOutput& out,
                                     int lane, WarpState<Config>& state) {
#pragma unroll
  for (int n = 0; n < Config::kRowTiles; ++n) {
    const int row = row_of_column<Config>(n, lane / 4);
    const QueryRow query = query_row(params, out, row);
    const auto* from = reinterpret_cast<const std::uint16_t*>(params.q) +
                       query.token * params.q_stride +
                       static_cast<std::int64_t>(query.head) * params.head_dim;
#pragma unroll
    for (int k = 0; k < WarpState<Config>::kDimTiles; ++k) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int element = query_element<Config>(k, r, lane & 3);
        const bool exists = row < out.rows.rows && element < params.head_dim;
        state.q[k][n][r] = exists ? *reinterpret_cast<const std::uint32_t*>(from + element) : 0;
      }
    }
  }
}

__device__ inline float2 widen_query(std::uint32_t pair, bool bf16) {
  if (bf16) return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xFFFF0000U)};
  return __half22float2(*reinterpret_cast<const __half2*>(&pair));
}

// The power of two at or below the largest magnitude of this lane's row in row tile n.
template <class Config>
__device__ inline float query_row_scale(const WarpState<Config>& state, int n, bool bf16) {
  float largest = 0.0F;
#pragma unroll
  for (int k = 0; k < WarpState<Config>::kDimTiles; ++k) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float2 pair = widen_query(state.q[k][n][r], bf16);
      largest = fmaxf(largest, fmaxf(fabsf(pair.x), fabsf(pair.y)));
    }
  }
  largest = fmaxf(largest, __shfl_xor_sync(~0U, largest, 1));
  largest = fmaxf(largest, __shfl_xor_sync(~0U, largest, 2));
  const std::uint32_t exponent = __float_as_uint(largest) & 0x7F800000U;
  if (exponent == 0) return 1.0F;
  // Its inverse must be a float as well.
  return __uint_as_float(min(max(exponent, 0x01000000U), 0x7E000000U));
}

// With nvfp4, adjacent elements have been fetched side by side and belong into two steps.
template <class Config>
__device__ inline void deal_queries(WarpState<Config>& state) {
#pragma unroll
  for (int k = 0; k < WarpState<Config>::kDimTiles; k += 2) {
#pragma unroll
    for (int n = 0; n < Config::kRowTiles; ++n) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const std::uint32_t first = state.q[k][n][r];
        const std::uint32_t second = state.q[k + 1][n][r];
        state.q[k][n][r] = __byte_perm(first, second, 0x5410);
        state.q[k + 1][n][r] = __byte_perm(first, second, 0x7632);
      }
    }
  }
}

// Turns the fragments into the type of the MMA, and finds what a dot product is multiplied with.
// For f16, rows are scaled to about 1 by a power of two: queries of bf16 may lie beyond its range.
template <class Config>
__device__ inline void prepare_queries(const DecodeKernelParams& params, const SegmentOutput& out,
                                       int lane, WarpState<Config>& state) {
  constexpr bool kBf16 = kUsesBf16<Config>;
  if constexpr (kIsNvfp4<Config>) deal_queries<Config>(state);
  const bool bf16 = params.query_is_bf16 != 0;
  const bool capped = params.softcap > 0.0F;
  float score_scale = params.softmax_scale * params.k.scale;
  if (params.k.head_scales != nullptr) score_scale *= params.k.head_scales[out.kv_head];
  if constexpr (kIsNvfp4<Config>) score_scale *= kE2m1Factor;
  score_scale *= capped ? 1.0F / params.softcap : kLog2E;
#pragma unroll
  for (int n = 0; n < Config::kRowTiles; ++n) {
    float row_scale = 1.0F;
    if (!kBf16 && bf16) row_scale = query_row_scale<Config>(state, n, bf16);
    if (kBf16 != bf16) {
      const float inverse = 1.0F / row_scale;
#pragma unroll
      for (int k = 0; k < WarpState<Config>::kDimTiles; ++k) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const float2 pair = widen_query(state.q[k][n][r], bf16);
          state.q[k][n][r] = pack_16<kBf16>(pair.x * inverse, pair.y * inverse);
        }
      }
    }
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int column = (lane & 3) * 2 + j;
      const float scale = score_scale * __shfl_sync(~0U, row_scale, column * 4);
      state.scale[n][j] = capped ? 1.0F : scale;
      state.cap_scale[n][j] = scale;
    }
  }
}

// Chunks past the end of a row are never copied: they are zero from the start.
template <class Config>
__device__ inline void clear_ring(std::byte* ring, const DecodeKernelParams& params) {
  if (params.k.chunks == Config::kChunks && params.v.chunks == Config::kChunks) return;
  for (int at = threadIdx.x * 16; at < Config::kRingBytes; at += Config::kThreads * 16) {
    *reinterpret_cast<uint4*>(ring + at) = uint4{0, 0, 0, 0};
  }
  __syncthreads();
}

// What of a plan a block keeps: where it begins.
struct WorkerBegin {
  Segment segment = {};
  PlanLine line = {};
};
static_assert(offsetof(WorkerPlan, line) == offsetof(WorkerBegin, line));

// The plan is read before the launch before has ended: no launch starts before the plan that it
// follows has ended, and a plan waits for all launches before it (plan.cu).
__device__ inline WorkerBegin read_plan(const DecodeKernelParams& params) {
  constexpr int kWords = sizeof(WorkerBegin) / 16;
  static_assert(sizeof(WorkerBegin) % 16 == 0 && sizeof(WorkerPlan) % 16 == 0);
  const WorkerPlan* const own = params.workers + blockIdx.x;
  std::uint32_t words[kWords][4];
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    load_past_l1(words[i], reinterpret_cast<const std::byte*>(own) + i * 16);
  }
  if (threadIdx.x == 0) prefetch_l2(&own->then);
  WorkerBegin begin;
  memcpy(&begin, words, sizeof(begin));
  return begin;
}

// The places of a warp's ring, of a step each, in the order in which they are filled and read.
template <class Config>
class Ring {
 public:
  static constexpr int kBytes = Config::kStages * Config::kStepBytes;

  __device__ explicit Ring(std::uint32_t begin) : begin_(begin), free_(begin), read_(begin) {}
  // Where the next step is copied to, and where the next step to be computed is.
  __device__ std::uint32_t take_free() { return take(free_); }
  __device__ std::uint32_t take_read() { return take(read_); }

 private:
  __device__ std::uint32_t take(std::uint32_t& at) const {
    const std::uint32_t taken = at;
    at += Config::kStepBytes;
    if (at == begin_ + kBytes) at = begin_;
    return taken;
  }

  std::uint32_t begin_;
  std::uint32_t free_;
  std::uint32_t read_;
};

// What a warp carries from segment to segment.
template <class Config>
struct WarpWork {
  int warp = 0;
  int lane = 0;
  int tile_tokens = 0;
  int turn = 0;  // of the warps; see steps_of()
  Segment segment = {};
  Loader<Config> loader;
  Ring<Config> ring;
  MergeMemory<Config> merge = {};
  WarpState<Config> state;
  int tiles = 0;   // that have been computed
  int others = 0;  // tiles that others compute of the item to merge; 0: there is none
};

// Ends a segment and moves to the next one, whose queries are asked for before the merge.
template <class Config>
__device__ inline void finish_and_fetch(const DecodeKernelParams& params, SegmentOutput& out,
                                        WarpWork<Config>& work) {
  const Segment done = work.segment;
  const SegmentOutput done_out = out;
  work.tiles += done.last - done.first;
  advance(params.shape, params.requests, params.workers[blockIdx.x].then, work.segment);
  if (work.segment.valid()) {
    out = output_of<Config>(params, work.segment);
    fetch_queries<Config>(params, out, work.lane, work.state);
  }
  // Ends behind a barrier, from where on all see what thread 0 has written to the pending item.
  finish_segment<Config>(params, done, done_out, work.state, work.merge);
  if (done.ends_item()) work.others = done.first;
}

// Computes all segments, where memory is the limit. Places of the ring that wait to be filled are
// filled at once at the end of a segment: the merge should not find the memory idle.
template <class Config>
__device__ inline void attend_segments(const DecodeKernelParams& params, WarpWork<Config>& work) {
  Segment& segment = work.segment;
  SegmentOutput out;
  if (segment.valid()) {
    out = output_of<Config>(params, segment);
    fetch_queries<Config>(params, out, work.lane, work.state);
  }
  int empty = Config::kStages;
  bool started = false;
  while (true) {
    // When the other parts should be there, while the ring fills; at the latest at the end.
    if (Config::kMergesEarly && work.others > 0 && (work.tiles > work.others || !segment.valid())) {
      merge_parts<Config>(params, *work.merge.pending, work.merge.mark);
      work.others = 0;
    }
    if (!segment.valid()) break;
    const SegmentSteps steps =
        steps_of<Config>(params.shape, work.tile_tokens, segment, work.warp, work.turn);
    bool prepared = false;
    int step = steps.begin;
    while (true) {
      const bool more = step < steps.last;
      // Not before the first copies are under way: the queries may still be.
      if (started && !prepared) {
        prepare_queries<Config>(params, out, work.lane, work.state);
        work.state.clear();
        prepared = true;
      }
      if (started && more && !Config::kFillsAtOnce) {
        if (empty == 0) {
          wait_copies<Config::kStages - 1>();
        } else {
          wait_copies<Config::kStages - 2>();
        }
      }
      // All lanes' copies of the step are visible, and all have read the step before.
      __syncwarp();
#pragma unroll 1
      for (; empty > 0; --empty) work.loader.issue(work.ring.take_free());
      if (!started) {
        started = true;
        continue;
      }
      if (!more) break;
      if (Config::kFillsAtOnce) {
        wait_copies<Config::kStages - 1>();
        __syncwarp();
      }
      attend_step<Config>(params, segment.request, out.rows, step * Config::kTokens,
                          work.ring.take_read(), work.lane, work.state);
      empty = 1;
      step += Config::kWarps;
    }
    finish_and_fetch<Config>(params, out, work);
  }
}

// Computes this warp's steps of a segment of which the first is under way, and starts the copies of
// as many later ones. In the usual case, plain steps while runs are copied, no instruction is
// jumped over: a warp would wait for those that it jumps to.
template <class Config>
__device__ inline void attend_steps(const DecodeKernelParams& params, const SegmentRows& rows,
                                    const SegmentSteps& steps, WarpWork<Config>& work) {
  static_assert(Config::kStages == 2);
  const RequestPlan& request = work.segment.request;
  const int first_plain = (rows.seen_by_all.first + Config::kTokens - 1) / Config::kTokens;
  const int last_plain =
      params.softcap > 0.0F ? 0 : min(steps.last, rows.seen_by_all.last / Config::kTokens);
  int step = steps.begin;
  while (step < steps.last) {
    // Behind it all lanes' copies of the step are visible, and all have read the step before.
    wait_copies<0>();
    __syncwarp();
    work.loader.issue(work.ring.take_free());
    if (step < first_plain || step >= last_plain) {
      attend_step<Config>(params, request, rows, step * Config::kTokens, work.ring.take_read(),
                          work.lane, work.state);
      step += Config::kWarps;
      continue;
    }
    while (true) {
      attend_plain_step<Config>(params, request, work.ring.take_read(), work.lane, work.state);
      step += Config::kWarps;
      if (step >= last_plain || !work.loader.has_runs()) break;
      wait_copies<0>();
      __syncwarp();
      work.loader.issue_run(work.ring.take_free());
    }
  }
}

// The same as attend_segments() where the arithmetic is the limit: a step is asked for when the one
// before it is worked on.
template <class Config>
__device__ inline void attend_busy_segments(const DecodeKernelParams& params,
                                            WarpWork<Config>& work) {
  Segment& segment = work.segment;
  if (!segment.valid()) return;
  SegmentOutput out = output_of<Config>(params, segment);
  fetch_queries<Config>(params, out, work.lane, work.state);
  work.loader.issue(work.ring.take_free());
  while (segment.valid()) {
    const SegmentSteps steps =
        steps_of<Config>(params.shape, work.tile_tokens, segment, work.warp, work.turn);
    prepare_queries<Config>(params, out, work.lane, work.state);
    work.state.clear();
    attend_steps<Config>(params, out.rows, steps, work);
    finish_and_fetch<Config>(params, out, work);
  }
}

template <class Config>
__global__ void __launch_bounds__(Config::kThreads, 1)
    decode_kernel(const __grid_constant__ DecodeKernelParams params) {
  extern __shared__ __align__(128) std::byte memory[];
  __shared__ PendingItem pending;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  clear_ring<Config>(memory, params);
  allow_next_launch();
  const WorkerBegin plan = read_plan(params);
  Loader<Config> loader(params, plan.segment, plan.line.tile_tokens, warp, lane);
  wait_for_launch_before();
  const std::uint32_t mark = params.marks[blockIdx.x];
  loader.begin();
  WarpWork<Config> work{
      .warp = warp,
      .lane = lane,
      .tile_tokens = plan.line.tile_tokens,
      .segment = plan.segment,
      .loader = loader,
      .ring = Ring<Config>(shared_address(memory) + warp * Ring<Config>::kBytes),
      .merge = {.buffers = reinterpret_cast<MergeBuffer<Config>*>(memory + Config::kRingBytes),
                .pending = &pending,
                .line = plan.line,
                .mark = mark}};
  if constexpr (Config::kNvfp4) {
    attend_busy_segments<Config>(params, work);
  } else {
    attend_segments<Config>(params, work);
  }
  wait_copies<0>();
  if (!Config::kMergesEarly && work.others > 0) merge_parts<Config>(params, pending, mark);
  if (threadIdx.x == 0) params.marks[blockIdx.x] = mark + 1;
}

template <attention::DataType Type, int Dim, int RowTiles>
cudaError_t launch_decode_kernel(const DecodeKernelParams& params, cudaStream_t stream) {
  using Config = DecodeConfig<Type, Dim, RowTiles>;
  static_assert(sizeof(MergeBuffer<Config>) == Config::kMergeBytes);
  const int bytes = Config::shared_bytes(params.merge_buffers);
  const cudaError_t status = cudaFuncSetAttribute(
      decode_kernel<Config>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (status != cudaSuccess) return status;
  return launch_overlapping(decode_kernel<Config>, params,
                            {.blocks = static_cast<unsigned>(params.shape.workers),
                             .threads = Config::kThreads,
                             .shared_bytes = static_cast<std::size_t>(bytes)},
                            params.overlap_launches != 0, stream);
}

}  // namespace kernelpath::kernels::cuda::sm80
