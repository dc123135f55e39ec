#pragma once

#include "kernels/cuda/sm80/gqa/config.h"
#include "kernels/cuda/sm80/gqa/kernel.h"
#include "kernels/cuda/sm80/gqa/ptx.cuh"

// How a warp brings its steps of 16 tokens into its ring in shared memory.
//
// The steps of a worker's share form one sequence across items; warp w of W takes every W-th. So
// all warps read the same number of bytes, and each runs ahead into the next item by itself: no
// barrier stands between the loads.
namespace kernelpath::kernels::cuda::sm80 {

// A segment as steps: [first, last) of the request, of which this warp takes begin, begin + W, ….
struct SegmentSteps {
  int first = 0;
  int last = 0;
  int begin = 0;
  TokenRange tokens = {};  // those that exist and that some query sees
};

// `turn`: the warp whose turn the segment's first step is; moves on to the next segment's.
template <int Warps>
__device__ inline SegmentSteps steps_of(const PlanShape& shape, const Segment& segment, int warp,
                                        int& turn) {
  constexpr int kTokens = 16;
  SegmentSteps steps;
  steps.tokens = request_tokens(shape, segment.request);
  const int per_tile = shape.tile_tokens / kTokens;
  const int tile = segment.request.first_tile;
  steps.first = max((tile + segment.first) * per_tile, steps.tokens.first / kTokens);
  steps.last = min((tile + segment.last) * per_tile, (steps.tokens.last + kTokens - 1) / kTokens);
  steps.last = max(steps.first, steps.last);
  steps.begin = steps.first + ((warp - turn) & (Warps - 1));
  turn = (turn + steps.last - steps.first) & (Warps - 1);
  return steps;
}

// Where 16-byte chunks of a side of a step lie. XOR with bits of the row spreads the same chunk of
// eight adjacent rows, which ldmatrix reads at once, over all banks. A side begins at a multiple of
// 128 bytes, so that the XOR of another chunk can be applied to an address.
template <class Config>
struct Swizzle {
  static constexpr int kSpan = Config::kChunks < 8 ? Config::kChunks : 8;  // permuted chunks
  static constexpr int kRowsPerLine = 8 / kSpan;                           // rows in 128 bytes

  static constexpr __device__ int bits_of_row(int row) {
    return (row / kRowsPerLine & (kSpan - 1)) * 16;
  }
  static __device__ int offset(int row, int chunk) {
    return row * Config::kRowBytes + (chunk * 16 ^ bits_of_row(row));
  }
  // From the address of an even chunk 0 (or 1) of a row to that of `chunk` (or chunk + 1).
  static __device__ std::uint32_t other_chunk(std::uint32_t address, int chunk) {
    return (address ^ (chunk & (kSpan - 1)) * 16) + chunk / kSpan * kSpan * 16;
  }
  // From the address of a row below `rows` to that of the row `more`, a multiple of `rows`, later.
  static __device__ std::uint32_t later_row(std::uint32_t address, int more) {
    return (address ^ bits_of_row(more)) + more * Config::kRowBytes;
  }
};

template <class Config>
class Loader {
 public:
  __device__ Loader(const DecodeKernelParams& params, const Segment& first, int warp, int lane)
      : params_(params), segment_(first), warp_(warp), lane_(lane), policy_(evict_first_policy()) {
    if (segment_.valid()) {
      enter();
      find_step();
    }
  }

  // Starts the copies of this warp's next step, and commits a group (an empty one at the end).
  __device__ void issue(std::uint32_t stage) {
    if (segment_.valid()) {
      const int token = step_ * Config::kTokens;
      const bool whole =
          token >= steps_.tokens.first && token + Config::kTokens <= steps_.tokens.last;
      const std::uint32_t v_stage = stage + Config::kSideBytes;
      if (in_one_page()) {
        if (whole) {
          copy_page_side<true>(params_.k, stage);
          copy_page_side<true>(params_.v, v_stage);
        } else {
          copy_page_side<false>(params_.k, stage);
          copy_page_side<false>(params_.v, v_stage);
        }
      } else {
        copy_gathered_side(params_.k, stage);
        copy_gathered_side(params_.v, v_stage);
      }
      if constexpr (Config::kScaleRowBytes != 0) copy_block_scales(stage);
      step_ += Config::kWarps;
      find_step();
    }
    commit_copies();
  }

 private:
  static constexpr int kRowsPerCopy = 32 / Config::kChunks;  // one instruction of the warp
  static constexpr int kCopies = Config::kTokens / kRowsPerCopy;

  __device__ bool in_one_page() const { return params_.page_size.divisor % Config::kTokens == 0; }

  __device__ void enter() {
    steps_ = steps_of<Config::kWarps>(params_.shape, segment_, warp_, turn_);
    step_ = steps_.begin;
    kv_head_ = segment_.item / (segment_.request.items / params_.shape.num_kv_heads);
  }

  // Moves to the segment that holds the next step, and asks for its page early: the copies that
  // need it are issued a whole step later.
  __device__ void find_step() {
    while (step_ >= steps_.last) {
      advance(params_.shape, params_.requests, segment_);
      if (!segment_.valid()) return;
      enter();
    }
    const int token =
        min(max(step_ * Config::kTokens + (lane_ & (Config::kTokens - 1)), steps_.tokens.first),
            steps_.tokens.last - 1);
    const std::uint32_t page = params_.page_size.quotient(static_cast<std::uint32_t>(token));
    slot_ = token - static_cast<int>(page * params_.page_size.divisor);
    page_ = __ldg(params_.block_table + segment_.index * params_.block_table_stride + page);
  }

  // Where the row of this lane's token begins.
  __device__ const std::byte* row_of_lane(const SideParams& side) const {
    return side.data + page_ * side.page_bytes + slot_ * side.token_bytes +
           kv_head_ * side.head_bytes;
  }

  // All 16 rows lie in one page, token_bytes apart.
  template <bool Whole>
  __device__ void copy_page_side(const SideParams& side, std::uint32_t to) const {
    const int row = lane_ / Config::kChunks;
    const int chunk = lane_ % Config::kChunks;
    const int token = step_ * Config::kTokens;
    // The slot of the step's first token; slot_ is that of this lane's (clamped) one.
    const int page_first = static_cast<int>(
        params_.page_size.quotient(static_cast<std::uint32_t>(token)) * params_.page_size.divisor);
    const std::byte* from = side.data + page_ * side.page_bytes + kv_head_ * side.head_bytes +
                            (token - page_first + row) * side.token_bytes + chunk * 16;
    if (chunk >= side.chunks) return;
    const std::uint32_t first = to + Swizzle<Config>::offset(row, chunk);
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const std::uint32_t at = Swizzle<Config>::later_row(first, i * kRowsPerCopy);
      if constexpr (Whole) {
        copy_async_16(at, from, policy_);
      } else {
        const int own = token + row + i * kRowsPerCopy;
        copy_async_16_or_zero(at, from, own >= steps_.tokens.first && own < steps_.tokens.last);
      }
      from += kRowsPerCopy * side.token_bytes;
    }
  }

  // Each row has a page of its own; lane l knows that of row l.
  __device__ void copy_gathered_side(const SideParams& side, std::uint32_t to) const {
    const int chunk = lane_ % Config::kChunks;
    const std::uint32_t first = to + Swizzle<Config>::offset(lane_ / Config::kChunks, chunk);
    const auto own_row = reinterpret_cast<std::uint64_t>(row_of_lane(side));
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const int row = lane_ / Config::kChunks + i * kRowsPerCopy;
      const std::uint64_t from = __shfl_sync(~0U, own_row, row);
      const int token = step_ * Config::kTokens + row;
      if (chunk < side.chunks) {
        copy_async_16_or_zero(Swizzle<Config>::later_row(first, i * kRowsPerCopy),
                              reinterpret_cast<const std::byte*>(from) + chunk * 16,
                              token >= steps_.tokens.first && token < steps_.tokens.last);
      }
    }
  }

  // Lanes 0 to 15 bring the scales of the rows of K, the others those of V.
  __device__ void copy_block_scales(std::uint32_t stage) const {
    const SideParams& side = lane_ < Config::kTokens ? params_.k : params_.v;
    const int row = lane_ % Config::kTokens;
    const int token = step_ * Config::kTokens + row;
    const bool read = token >= steps_.tokens.first && token < steps_.tokens.last;
    // A scale stands for 16 elements of 4 bits: for 8 bytes.
    const std::byte* from =
        side.block_scales +
        (page_ * side.page_bytes + slot_ * side.token_bytes + kv_head_ * side.head_bytes) / 8;
    const std::uint32_t to = stage + 2 * Config::kSideBytes +
                             (lane_ < Config::kTokens ? 0 : Config::kScaleBytes) +
                             row * Config::kScaleRowBytes;
    // 32 elements, two scales, to a chunk; rows of 64 elements at least.
    for (int word = 0; word * 2 < side.chunks; ++word) {
      copy_async_small_or_zero<4>(to + word * 4, from + word * 4, read);
    }
  }

  const DecodeKernelParams& params_;
  Segment segment_;
  SegmentSteps steps_ = {};
  int warp_;
  int lane_;
  int turn_ = 0;
  int step_ = 0;
  int kv_head_ = 0;
  int slot_ = 0;
  std::int64_t page_ = 0;
  std::uint64_t policy_;
};

}  // namespace kernelpath::kernels::cuda::sm80
