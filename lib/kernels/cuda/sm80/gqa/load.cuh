#pragma once

#include "kernels/cuda/sm80/gqa/config.h"
#include "kernels/cuda/sm80/gqa/kernel.h"
#include "kernels/cuda/sm80/gqa/ptx.cuh"

// How a warp brings its steps into its ring in shared memory.
//
// The steps of a worker's share form one sequence across items; warp w of W takes every W-th. So
// all warps read the same number of bytes, and each runs ahead into the next item by itself: no
// barrier stands between the loads.
namespace kernelpath::kernels::cuda::sm80 {

// A segment as steps: [first, last) of the request, of which this warp takes begin, begin + W, ….
struct SegmentSteps {
  int last = 0;
  int begin = 0;
  TokenRange tokens = {};
};

// `turn`: the warp whose turn the segment's first step is; moves on to the next segment's.
template <class Config>
__device__ inline SegmentSteps steps_of(const PlanShape& shape, int tile_tokens,
                                        const Segment& segment, int warp, int& turn) {
  SegmentSteps steps;
  steps.tokens = segment_tokens(shape, tile_tokens, segment);
  const int first = steps.tokens.first / Config::kTokens;
  steps.last = max(first, (steps.tokens.last + Config::kTokens - 1) / Config::kTokens);
  const int wait = warp - turn;
  steps.begin = first + (wait < 0 ? wait + Config::kWarps : wait);
  turn = (turn + steps.last - first) % Config::kWarps;
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
  // Reads nothing but the plan.
  __device__ Loader(const DecodeKernelParams& params, const Segment& first, int tile_tokens,
                    int warp, int lane)
      : params_(params),
        segment_(first),
        tile_tokens_(tile_tokens),
        warp_(warp),
        lane_(lane),
        row_(lane / Config::kChunks),
        chunk_(lane % Config::kChunks),
        policy_(evict_first_policy()) {
    pages_[0] =
        load_past_l1(params.first_pages + static_cast<int>(blockIdx.x) * params.shape.first_pages +
                     warp * Config::kTokenTiles + own_tile());
    if (segment_.valid()) enter();
  }

  // Finds the first step where the plan does not give its pages. From here on the memory that
  // launches before may write is read.
  __device__ void begin() {
    if (!segment_.valid()) return;
    if (step_ < steps_.last && pages_hold_tiles()) {
      static_cast<void>(locate(own_tile(), 0, slots_[0]));
    } else {
      find_step();
    }
  }

  // Starts the copies of this warp's next step, and commits a group (an empty one at the end).
  __device__ void issue(std::uint32_t stage) {
    if (segment_.valid()) {
      if (is_run(step_)) {
        copy_runs(stage, run_source());
      } else {
        copy_rows(stage);
      }
      step_ += Config::kWarps;
      find_step();
    }
    commit_copies();
  }

  // Whether issue_run() may be called: the next step and the one after it are runs of one segment.
  __device__ bool has_runs() const { return is_run(step_) && step_ + Config::kWarps < last_run_; }

  // issue() in the usual case, without a branch.
  __device__ void issue_run(std::uint32_t stage) {
    RunSource from = run_source();
    step_ += Config::kWarps;
    const int token = step_ * Config::kTokens + own_tile() * kTileTokens;
    const std::uint32_t page = params_.page_size.quotient(static_cast<std::uint32_t>(token));
    slots_[0] = token - static_cast<int>(page * params_.page_size.divisor);
    // The page of the next step is asked for between the last use of this one's, which frees its
    // register, and the copies, which it would have to wait for.
    from.settle();
    pages_[0] = load_in_order(table_ + page);
    copy_runs(stage, from);
    commit_copies();
  }

 private:
  static constexpr int kTileTokens = Config::kTileTokens;
  static constexpr int kTileBytes = kTileTokens * Config::kRowBytes;
  static constexpr int kRowsPerCopy = 32 / Config::kChunks;  // one instruction of the warp
  static constexpr int kCopies = kTileTokens / kRowsPerCopy;
  static constexpr int kTileLanes = 32 / Config::kTokenTiles;       // that look a tile up
  static constexpr int kRowsPerRun = kTileLanes / Config::kChunks;  // that they copy at a time
  static_assert(kRowsPerRun >= 1);
  static_assert(kTileTokens == kPageTokens);
  // Of 16 bytes, of a tile's scales of one side; where there are none, the number is not used.
  static constexpr int kScaleChunks = Config::kNvfp4 ? Config::kDim / 16 : 1;
  // Lanes that share a tile take chunks of one side, or one chunk each.
  static_assert(!Config::kNvfp4 || kScaleChunks == kTileLanes || 2 * kScaleChunks <= kTileLanes);

  // Whether 16 tokens from a multiple of 16 on lie in one page.
  __device__ bool pages_hold_tiles() const { return params_.page_size.divisor % kTileTokens == 0; }
  // The tile whose page this lane looks up where pages hold tiles, and its place among the lanes
  // that do.
  __device__ int own_tile() const { return lane_ / kTileLanes; }
  __device__ int own_place() const { return lane_ % kTileLanes; }

  __device__ void enter() {
    steps_ = steps_of<Config>(params_.shape, tile_tokens_, segment_, warp_, turn_);
    step_ = steps_.begin;
    kv_head_ = segment_.kv_head();
    table_ = params_.block_table + segment_.index * params_.block_table_stride;
    own_chunk_[0] = head_of(params_.k) + own_place() * 16;
    own_chunk_[1] = head_of(params_.v) + own_place() * 16;
    if constexpr (Config::kScaleRowBytes != 0) {
      own_scales_[0] = scales_of(params_.k) + own_place() % kScaleChunks * 16;
      own_scales_[1] = scales_of(params_.v) + own_place() % kScaleChunks * 16;
    }
    first_run_ = (steps_.tokens.first + Config::kTokens - 1) / Config::kTokens;
    last_run_ = params_.tiles_are_runs != 0 ? steps_.tokens.last / Config::kTokens : 0;
  }

  // The queries of the segment, which are read when the one before it ends: out of memory they
  // would come later than its merge takes.
  __device__ void prefetch_queries() const {
    constexpr int kSector = 32;
    const int sectors = params_.head_dim * 2 / kSector;
    const int group = params_.shape.group;
    const int begin = segment_.block() * Config::kRows;
    const int rows = min(Config::kRows, segment_.request.num_queries * group - begin);
#pragma unroll 1
    for (int i = lane_; i < rows * sectors; i += 32) {
      const auto row = static_cast<std::uint32_t>(begin + i / sectors);
      const std::uint32_t query = params_.group.quotient(row);
      const auto head = static_cast<unsigned>(segment_.kv_head() * group) + row - query * group;
      const std::int64_t at =
          (segment_.request.query_begin + static_cast<std::int64_t>(query)) * params_.q_stride +
          static_cast<std::int64_t>(head) * params_.head_dim;
      prefetch_l2(params_.q + 2 * at + i % sectors * kSector);
    }
  }

  __device__ static std::uint64_t product(std::uint32_t a, std::uint32_t b) {
    return static_cast<std::uint64_t>(a) * b;
  }

  // The page that holds a row of a tile of the present step, by its place in the table, and the
  // row's slot in it. Rows that are not read name no page: one that is read takes their place.
  __device__ std::uint32_t locate(int tile, int row, int& slot) const {
    const int token = step_ * Config::kTokens + tile * kTileTokens + row;
    const int read = min(max(token, steps_.tokens.first), steps_.tokens.last - 1);
    const std::uint32_t page = params_.page_size.quotient(static_cast<std::uint32_t>(read));
    slot = token - static_cast<int>(page * params_.page_size.divisor);
    return page;
  }

  // Moves to the segment that holds the next step, and asks for its pages early: the copies that
  // need them are issued a whole step later. Where pages hold tiles, each lane knows its own tile's
  // (in the arrays' first element), else that of row l % 16 of each tile.
  __device__ void find_step() {
    while (step_ >= steps_.last) {
      advance(params_.shape, params_.requests, params_.workers[blockIdx.x].then, segment_);
      if (!segment_.valid()) return;
      enter();
      if (warp_ == 0) prefetch_queries();
    }
    if (pages_hold_tiles()) {
      pages_[0] = __ldg(table_ + locate(own_tile(), 0, slots_[0]));
      return;
    }
#pragma unroll
    for (int t = 0; t < Config::kTokenTiles; ++t) {
      pages_[t] = __ldg(table_ + locate(t, lane_ % kTileTokens, slots_[t]));
    }
  }
  __device__ unsigned page_of(int tile) const {
    if (Config::kTokenTiles == 1) return static_cast<unsigned>(pages_[0]);
    return static_cast<unsigned>(__shfl_sync(~0U, pages_[0], tile * kTileLanes));
  }
  __device__ int slot_of(int tile) const {
    return Config::kTokenTiles == 1 ? slots_[0] : __shfl_sync(~0U, slots_[0], tile * kTileLanes);
  }

  __device__ bool is_read(int token) const {
    return token >= steps_.tokens.first && token < steps_.tokens.last;
  }
  __device__ bool is_whole() const {
    const int token = step_ * Config::kTokens;
    return token >= steps_.tokens.first && token + Config::kTokens <= steps_.tokens.last;
  }
  __device__ bool is_run(int step) const { return step >= first_run_ && step < last_run_; }

  // Where slot 0 of page 0 of this segment's head begins.
  __device__ const std::byte* head_of(const SideParams& side) const {
    return side.data + product(side.head_bytes, static_cast<unsigned>(kv_head_));
  }
  __device__ const std::byte* scales_of(const SideParams& side) const {
    return side.block_scales + product(side.head_bytes / 8, static_cast<unsigned>(kv_head_));
  }
  // The first byte of this lane's chunk in the first row that it copies of a tile in one page.
  __device__ const std::byte* first_chunk(const SideParams& side, int tile) const {
    return head_of(side) + product(page_of(tile), side.page_bytes) +
           static_cast<std::int64_t>(slot_of(tile) + row_) * side.token_bytes + chunk_ * 16;
  }

  // Where this lane's first chunks of K and V lie, and those of their scales, in a step that is a
  // run: each lane copies from the tile whose page it has looked up.
  struct RunSource {
    std::uint64_t sides[2] = {};
    std::uint64_t scales[2] = {};
    // Has them computed here.
    __device__ void settle() {
      asm volatile("" : "+l"(sides[0]), "+l"(sides[1]));
      if constexpr (Config::kScaleRowBytes != 0) {
        asm volatile("" : "+l"(scales[0]), "+l"(scales[1]));
      }
    }
  };
  __device__ RunSource run_source() const {
    const auto page = static_cast<unsigned>(pages_[0]);
    const auto slot = static_cast<unsigned>(slots_[0]);
    RunSource from;
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      const std::uint32_t page_bytes = side == 0 ? params_.k.page_bytes : params_.v.page_bytes;
      from.sides[side] = reinterpret_cast<std::uint64_t>(own_chunk_[side]) +
                         product(page, page_bytes) + product(slot, Config::kRowBytes);
      // A scale stands for 16 elements of 4 bits: for 8 bytes.
      from.scales[side] = reinterpret_cast<std::uint64_t>(own_scales_[side]) +
                          product(page, page_bytes / 8) + product(slot, Config::kScaleRowBytes);
    }
    return from;
  }

  // A whole step of tiles that are runs of bytes.
  __device__ void copy_runs(std::uint32_t stage, const RunSource& from) const {
    const std::uint32_t to =
        stage + own_tile() * kTileBytes +
        Swizzle<Config>::offset(own_place() / Config::kChunks, own_place() % Config::kChunks);
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      const auto* const own = reinterpret_cast<const std::byte*>(from.sides[side]);
#pragma unroll
      for (int row = 0; row < kTileTokens; row += kRowsPerRun) {
        copy_async_16(Swizzle<Config>::later_row(to, row) + side * Config::kSideBytes,
                      own + row * Config::kRowBytes, policy_);
      }
    }
    if constexpr (Config::kScaleRowBytes != 0) copy_scale_runs(stage, from);
  }

  // The scales of both sides; where a tile has more lanes than chunks of a side, each lane has one
  // chunk or none.
  __device__ void copy_scale_runs(std::uint32_t stage, const RunSource& from) const {
    const std::uint32_t to = stage + 2 * Config::kSideBytes +
                             own_tile() * kTileTokens * Config::kScaleRowBytes +
                             own_place() % kScaleChunks * 16;
    if constexpr (kScaleChunks == kTileLanes) {
      copy_async_16(to, reinterpret_cast<const std::byte*>(from.scales[0]), policy_);
      copy_async_16(to + Config::kScaleBytes, reinterpret_cast<const std::byte*>(from.scales[1]),
                    policy_);
    } else if (own_place() < 2 * kScaleChunks) {
      const bool is_k = own_place() < kScaleChunks;
      copy_async_16(to + (is_k ? 0 : Config::kScaleBytes),
                    reinterpret_cast<const std::byte*>(is_k ? from.scales[0] : from.scales[1]),
                    policy_);
    }
  }

  // Everything else: partial steps, rows apart, and rows shorter than the ring's.
  __device__ void copy_rows(std::uint32_t stage) const {
    const bool whole = is_whole();
    // Not unrolled, as other loops here are not: launches on short contexts spend much of their
    // time on fetching instructions.
#pragma unroll 1
    for (int i = 0; i < 2; ++i) {
      const SideParams& side = i == 0 ? params_.k : params_.v;
      const std::uint32_t to = stage + i * Config::kSideBytes;
      if (!pages_hold_tiles()) {
        copy_gathered(side, to);
      } else if (whole) {
        copy_whole(side, to);
      } else {
        copy_partial(side, to);
      }
    }
    if constexpr (Config::kScaleRowBytes != 0) copy_block_scales(stage);
  }

  // All rows are read.
  __device__ void copy_whole(const SideParams& side, std::uint32_t to) const {
    const std::uint32_t first = to + Swizzle<Config>::offset(row_, chunk_);
#pragma unroll 1
    for (int t = 0; t < Config::kTokenTiles; ++t) {
      const std::byte* const from = first_chunk(side, t);
      if (chunk_ >= side.chunks) continue;
#pragma unroll
      for (int i = 0; i < kCopies; ++i) {
        copy_async_16(Swizzle<Config>::later_row(first + t * kTileBytes, i * kRowsPerCopy),
                      from + i * kRowsPerCopy * side.token_bytes, policy_);
      }
    }
  }

  // Rows outside the segment's tokens become zeros without a read.
  __device__ void copy_partial(const SideParams& side, std::uint32_t to) const {
    const std::uint32_t first = to + Swizzle<Config>::offset(row_, chunk_);
#pragma unroll 1
    for (int t = 0; t < Config::kTokenTiles; ++t) {
      const std::byte* from = first_chunk(side, t);
      if (chunk_ >= side.chunks) continue;
#pragma unroll 1
      for (int i = 0; i < kCopies; ++i) {
        const int row = i * kRowsPerCopy;
        copy_async_16_or_zero(Swizzle<Config>::later_row(first + t * kTileBytes, row), from,
                              is_read(step_ * Config::kTokens + t * kTileTokens + row + row_));
        from += kRowsPerCopy * side.token_bytes;
      }
    }
  }

  // Each row has a page of its own.
  __device__ void copy_gathered(const SideParams& side, std::uint32_t to) const {
    const std::uint32_t first = to + Swizzle<Config>::offset(row_, chunk_);
#pragma unroll
    for (int t = 0; t < Config::kTokenTiles; ++t) {
      const auto own_row = reinterpret_cast<std::uint64_t>(head_of(side)) +
                           product(static_cast<unsigned>(pages_[t]), side.page_bytes) +
                           static_cast<std::int64_t>(slots_[t]) * side.token_bytes;
#pragma unroll 1
      for (int i = 0; i < kCopies; ++i) {
        const int row = i * kRowsPerCopy;
        const std::uint64_t from = __shfl_sync(~0U, own_row, row + row_);
        if (chunk_ >= side.chunks) continue;
        copy_async_16_or_zero(Swizzle<Config>::later_row(first + t * kTileBytes, row),
                              reinterpret_cast<const std::byte*>(from) + chunk_ * 16,
                              is_read(step_ * Config::kTokens + t * kTileTokens + row + row_));
      }
    }
  }

  // Lanes 0 to 15 bring the scales of the rows of K, the others those of V.
  __device__ void copy_block_scales(std::uint32_t stage) const {
    const bool is_k = lane_ < kTileTokens;
    const SideParams& side = is_k ? params_.k : params_.v;
    const int row = lane_ % kTileTokens;
#pragma unroll
    for (int t = 0; t < Config::kTokenTiles; ++t) {
      const bool runs = pages_hold_tiles();
      const unsigned page = runs ? page_of(t) : static_cast<unsigned>(pages_[t]);
      const int slot = runs ? slot_of(t) + row : slots_[t];
      // A scale stands for 16 elements of 4 bits: for 8 bytes.
      const std::byte* const from =
          side.block_scales +
          (static_cast<std::int64_t>(product(page, side.page_bytes) +
                                     product(side.head_bytes, static_cast<unsigned>(kv_head_))) +
           static_cast<std::int64_t>(slot) * side.token_bytes) /
              8;
      const std::uint32_t to = stage + 2 * Config::kSideBytes + (is_k ? 0 : Config::kScaleBytes) +
                               (t * kTileTokens + row) * Config::kScaleRowBytes;
      const bool read = is_read(step_ * Config::kTokens + t * kTileTokens + row);
      copy_scale_row(to, from, side.chunks, read);
    }
  }

  static __device__ void copy_scale_row(std::uint32_t to, const std::byte* from, int chunks,
                                        bool read) {
    // Two scales to a chunk of 32 elements.
    if (Config::kScaleRowBytes >= 8 && chunks == Config::kChunks) {
#pragma unroll 1
      for (int at = 0; at < Config::kScaleRowBytes; at += 8) {
        copy_async_small_or_zero<8>(to + at, from + at, read);
      }
      return;
    }
#pragma unroll 1
    for (int at = 0; at < chunks * 2; at += 4) {
      copy_async_small_or_zero<4>(to + at, from + at, read);
    }
  }

  const DecodeKernelParams& params_;
  Segment segment_;
  int tile_tokens_;
  SegmentSteps steps_ = {};
  int warp_;
  int lane_;
  int row_;    // of this lane's chunk in an instruction's rows
  int chunk_;  // of 16 bytes in its row
  int turn_ = 0;
  int step_ = 0;
  int kv_head_ = 0;
  const std::int32_t* table_ = nullptr;
  const std::byte* own_chunk_[2] = {};   // of K and V: this lane's in a run in page 0, slot 0
  const std::byte* own_scales_[2] = {};  // the same of their scales
  int first_run_ = 0;                    // whole steps of the segment, where they are runs
  int last_run_ = 0;
  int pages_[Config::kTokenTiles] = {};
  int slots_[Config::kTokenTiles] = {};
  std::uint64_t policy_;
};

}  // namespace kernelpath::kernels::cuda::sm80
