#include "attention/plan.h"

#include "base/checked.h"

#include <algorithm>

namespace kernelpath::attention {

SlotRange visible_slots(const Geometry& geometry, const KvShard& shard, std::int64_t position,
                        std::int64_t seq_len) {
  const bool bounded = geometry.causal || geometry.window > 0 || geometry.chunk > 0;
  const std::int64_t last = bounded ? std::min(position + 1, seq_len) : seq_len;
  if (position < 0 || last <= 0) return {};
  std::int64_t first = 0;
  if (geometry.window > 0) first = std::max(first, position - geometry.window + 1);
  if (geometry.chunk > 0) first = std::max(first, position / geometry.chunk * geometry.chunk);
  return {.first = shard.slots_before(first), .last = shard.slots_before(last)};
}

std::int64_t AttentionPlan::tile_begin(const WorkItem& item, std::int64_t thread,
                                       std::int64_t threads) const {
  // The first cost of this thread's share: a tile that begins at or after it is its own.
  const std::int64_t share = ceil_div(total_cost * thread, threads);
  const std::int64_t tiles = ceil_div(std::max<std::int64_t>(share - item.first_cost, 0),
                                      std::max<std::int64_t>(item.rows(), 1));
  return std::min(item.first_tile + tiles, item.last_tile);
}

std::vector<SplitPart> split_parts(const AttentionPlan& plan, std::int64_t threads) {
  std::vector<SplitPart> parts;
  std::int64_t states = 0;
  const auto add = [&](std::size_t item, SlotRange tiles, bool folded) {
    const std::int64_t tile_states = folded ? 1 : tiles.last - tiles.first;
    parts.push_back(
        {.item = item, .first_tile = tiles.first, .last_tile = tiles.last, .first_state = states});
    states += tile_states * plan.items[item].rows();
  };
  for (std::int64_t thread = 1; thread < threads; ++thread) {
    const std::int64_t share = ceil_div(plan.total_cost * thread, threads);
    // The last item that begins before the share may reach into it.
    const auto at = std::ranges::lower_bound(plan.items, share, {}, &WorkItem::first_cost);
    if (at == plan.items.begin()) continue;
    const auto item = static_cast<std::size_t>(at - plan.items.begin()) - 1;
    const WorkItem& work = plan.items[item];
    const std::int64_t first = plan.tile_begin(work, thread, threads);
    const std::int64_t last = plan.tile_begin(work, thread + 1, threads);
    if (first == work.first_tile || first == last) continue;
    if (parts.empty() || parts.back().item != item) {
      add(item, {.first = work.first_tile, .last = first}, true);
    }
    add(item, {.first = first, .last = last}, false);
  }
  return parts;
}

std::int64_t split_states(const AttentionPlan& plan, std::span<const SplitPart> parts) {
  if (parts.empty()) return 0;
  const SplitPart& last = parts.back();
  return last.first_state + (last.last_tile - last.first_tile) * plan.items[last.item].rows();
}

namespace {

struct RequestRows {
  std::int32_t request = 0;
  std::int64_t queries = 0;
  std::int64_t seq_len = 0;
  std::int64_t group = 0;
};

// Key tiles that the rows [first_row, last_row) see together. Both ends of a query's range grow
// with its position, so that the first and the last query span all of them.
SlotRange tiles_of_rows(const AttentionParams& params, const PlanShape& shape,
                        const RequestRows& rows, std::int64_t first_row, std::int64_t last_row) {
  const auto range_of = [&](std::int64_t row) {
    const std::int64_t position = rows.seq_len - rows.queries + row / rows.group;
    return visible_slots(params.geometry, params.shard, position, rows.seq_len);
  };
  SlotRange range{.first = range_of(first_row).first, .last = range_of(last_row - 1).last};
  if (params.selected != nullptr) {
    // Entries of the query's list in place of slots: no more than there are keys to choose from.
    const std::int64_t keys = params.shard.count == 1 ? range.last : rows.seq_len;
    range = {.first = 0, .last = std::min(params.selected_stride, keys)};
  }
  if (range.empty()) return {};
  return {.first = range.first / shape.tile_tokens,
          .last = ceil_div(range.last, shape.tile_tokens)};
}

}  // namespace

void make_plan(const AttentionParams& params, const PlanShape& shape, AttentionPlan& plan) {
  plan.shape = shape;
  plan.items.clear();
  plan.total_cost = 0;
  const Geometry& geometry = params.geometry;
  const std::int64_t group = geometry.num_heads / geometry.num_kv_heads;
  // Whole queries where several fit into a block; index-sparse queries share no keys.
  std::int64_t block =
      group <= shape.block_rows ? shape.block_rows / group * group : shape.block_rows;
  if (params.selected != nullptr) block = std::min(block, group);
  for (std::int64_t r = 0; r < params.batch.num_requests; ++r) {
    const RequestRows rows{.request = static_cast<std::int32_t>(r),
                           .queries = params.batch.query_start[r + 1] - params.batch.query_start[r],
                           .seq_len = params.batch.seq_lens[r],
                           .group = group};
    for (std::int64_t kv_head = 0; kv_head < geometry.num_kv_heads; ++kv_head) {
      for (std::int64_t row = 0; row < rows.queries * group;) {
        // A block of a sparse query ends with the query.
        const std::int64_t limit =
            params.selected != nullptr ? (row / group + 1) * group : rows.queries * group;
        const std::int64_t last_row = std::min(row + block, limit);
        const SlotRange tiles = tiles_of_rows(params, shape, rows, row, last_row);
        plan.items.push_back({.request = rows.request,
                              .kv_head = static_cast<std::int32_t>(kv_head),
                              .first_row = row,
                              .last_row = last_row,
                              .first_tile = tiles.first,
                              .last_tile = tiles.last,
                              .first_cost = plan.total_cost});
        plan.total_cost += (tiles.last - tiles.first) * (last_row - row);
        row = last_row;
      }
    }
  }
}

}  // namespace kernelpath::attention
