#pragma once

#include "attention/params.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kernelpath::attention {

// Local slots [first, last) of a request's cache.
struct SlotRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
  [[nodiscard]] constexpr bool empty() const { return first >= last; }
};

// The slots that a query at `position` of a request with `seq_len` tokens sees: one range, since
// causality, window and chunk all keep a run of positions. Empty for padded rows (position < 0).
SlotRange visible_slots(const Geometry& geometry, const KvShard& shard, std::int64_t position,
                        std::int64_t seq_len);

// How work is cut. Both numbers are the kernels', and never depend on the batch or on the number of
// threads: the keys of a row are summed tile by tile in the order of their slots, so that a row's
// output has the same bits in every batch, for every chunking of its prompt and for any number of
// threads.
struct PlanShape {
  std::int64_t tile_tokens = 256;  // tiles begin at multiples of it
  std::int64_t block_rows = 64;    // query rows that share one pass over the keys

  friend bool operator==(const PlanShape&, const PlanShape&) = default;
};

// Rows [first_row, last_row) of a request and KV head over its key tiles [first_tile, last_tile).
// Row i belongs to query i / group and to query head kv_head * group + i % group.
struct WorkItem {
  std::int32_t request = 0;
  std::int32_t kv_head = 0;
  std::int64_t first_row = 0;
  std::int64_t last_row = 0;
  std::int64_t first_tile = 0;
  std::int64_t last_tile = 0;   // = first_tile where no row sees a key
  std::int64_t first_cost = 0;  // of the items before; a tile costs one for each of its rows

  [[nodiscard]] constexpr std::int64_t rows() const { return last_row - first_row; }
  [[nodiscard]] constexpr std::int64_t tiles() const { return last_tile - first_tile; }
};

// All work of a call, laid on one line in the order of requests, KV heads and rows. Thread i of n
// takes the tiles that begin in [total * i / n, total * (i + 1) / n): shares differ by no more than
// one tile, also where one long request is all there is. Heads of a request are adjacent, which
// keeps its pages in the cache.
struct AttentionPlan {
  PlanShape shape;
  std::vector<WorkItem> items;
  std::int64_t total_cost = 0;

  // The first tile of `item` that thread `thread` of `threads`, or one after it, takes; in
  // [first_tile, last_tile]. Thread i takes [tile_begin(i), tile_begin(i + 1)).
  [[nodiscard]] std::int64_t tile_begin(const WorkItem& item, std::int64_t thread,
                                        std::int64_t threads) const;
};

// A run of tiles of an item that several threads share. The first part of an item keeps one state
// for each row, its tiles folded in order; a later part keeps one state for each tile and row,
// since folding them among themselves would sum in another order than a single thread does. The
// states of a part follow each other from `first_state` on, tile by tile.
struct SplitPart {
  std::size_t item = 0;
  std::int64_t first_tile = 0;
  std::int64_t last_tile = 0;
  std::int64_t first_state = 0;
};

// The parts of all items that are split between threads, in the order in which they are merged.
// Each thread has at most one part that is not an item's first, and at most one that is.
std::vector<SplitPart> split_parts(const AttentionPlan& plan, std::int64_t threads);
// How many states they keep together.
std::int64_t split_states(const AttentionPlan& plan, std::span<const SplitPart> parts);

// Fills `plan` (whose memory is reused) for the requests of `params`; reads the geometry, the
// batch, the shard and `selected_stride` of them, and no keys.
void make_plan(const AttentionParams& params, const PlanShape& shape, AttentionPlan& plan);

}  // namespace kernelpath::attention
