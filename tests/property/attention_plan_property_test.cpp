#include "attention/plan.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

// The plan of the attention kernels: every visible token of every row is read exactly once, and
// threads get equal shares.
namespace kernelpath::attention {
namespace {

struct Batch {
  std::vector<std::int32_t> query_start{0};
  std::vector<std::int32_t> seq_lens;
  AttentionParams params;

  void add(std::int64_t queries, std::int64_t seq_len) {
    query_start.push_back(query_start.back() + static_cast<std::int32_t>(queries));
    seq_lens.push_back(static_cast<std::int32_t>(seq_len));
    params.batch.num_requests = static_cast<std::int64_t>(seq_lens.size());
    params.batch.query_start = query_start.data();
    params.batch.seq_lens = seq_lens.data();
  }
};

Batch random_batch() {
  Batch batch;
  Geometry& geometry = batch.params.geometry;
  geometry.num_kv_heads = *rc::gen::inRange<std::int64_t>(1, 5);
  geometry.num_heads = geometry.num_kv_heads * *rc::gen::inRange<std::int64_t>(1, 50);
  geometry.causal = *rc::gen::arbitrary<bool>();
  geometry.window = *rc::gen::element<std::int64_t>(0, 0, 1, 37, 256, 1000);
  geometry.chunk = *rc::gen::element<std::int64_t>(0, 0, 8, 500);
  const auto requests = *rc::gen::inRange(0, 6);
  for (int r = 0; r < requests; ++r) {
    const auto seq_len = *rc::gen::inRange<std::int64_t>(0, 3000);
    const auto queries =
        *rc::gen::inRange<std::int64_t>(0, std::min<std::int64_t>(seq_len, 40) + 2);
    batch.add(queries, seq_len);
  }
  if (*rc::gen::inRange(0, 3) == 0) {
    KvShard& shard = batch.params.shard;
    shard.count = *rc::gen::inRange<std::int64_t>(2, 5);
    shard.rank = *rc::gen::inRange<std::int64_t>(0, shard.count);
    shard.interleave = *rc::gen::element<std::int64_t>(1, 16, 300);
  }
  return batch;
}

// The tiles that a row needs, from its definition: those with a slot whose position it sees.
SlotRange needed_tiles(const AttentionParams& params, const WorkItem& item, std::int64_t row,
                       std::int64_t tile_tokens) {
  const Geometry& geometry = params.geometry;
  const std::int64_t seq_len = params.batch.seq_lens[item.request];
  const std::int64_t queries =
      params.batch.query_start[item.request + 1] - params.batch.query_start[item.request];
  const std::int64_t position =
      seq_len - queries + row / (geometry.num_heads / geometry.num_kv_heads);
  SlotRange tiles{.first = 1 << 30, .last = 0};
  std::int64_t slot = 0;
  const bool bounded = geometry.causal || geometry.window > 0 || geometry.chunk > 0;
  for (std::int64_t key = 0; key < seq_len && position >= 0; ++key) {
    if (!params.shard.holds(key)) continue;
    const std::int64_t here = slot++;
    if (bounded && key > position) continue;
    if (geometry.window > 0 && key <= position - geometry.window) continue;
    if (geometry.chunk > 0 && key / geometry.chunk != position / geometry.chunk) continue;
    tiles.first = std::min(tiles.first, here / tile_tokens);
    tiles.last = std::max(tiles.last, here / tile_tokens + 1);
  }
  return tiles;
}

RC_GTEST_PROP(AttentionPlan, EveryRow_HasTheTilesItNeedsOnce, ()) {
  const Batch batch = random_batch();
  AttentionPlan plan;
  make_plan(batch.params, {}, plan);
  const std::int64_t group = batch.params.geometry.num_heads / batch.params.geometry.num_kv_heads;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> next_row;
  for (const WorkItem& item : plan.items) {
    // Rows of a request and head follow each other without gaps.
    std::int64_t& next = next_row[{item.request, item.kv_head}];
    RC_ASSERT(item.first_row == next);
    RC_ASSERT(item.rows() >= 1);
    RC_ASSERT(item.rows() <= plan.shape.block_rows);
    next = item.last_row;
    SlotRange needed{.first = 1 << 30, .last = 0};
    for (const std::int64_t row : {item.first_row, item.last_row - 1}) {
      const SlotRange tiles = needed_tiles(batch.params, item, row, plan.shape.tile_tokens);
      needed.first = std::min(needed.first, tiles.first);
      needed.last = std::max(needed.last, tiles.last);
    }
    if (needed.empty()) continue;
    RC_ASSERT(item.first_tile <= needed.first);
    RC_ASSERT(item.last_tile == needed.last);
  }
  for (std::int64_t r = 0; r < batch.params.batch.num_requests; ++r) {
    const std::int64_t rows = (batch.query_start[static_cast<std::size_t>(r) + 1] -
                               batch.query_start[static_cast<std::size_t>(r)]) *
                              group;
    for (std::int32_t head = 0; head < batch.params.geometry.num_kv_heads; ++head) {
      const auto found = next_row.find({static_cast<std::int32_t>(r), head});
      RC_ASSERT((found == next_row.end() ? 0 : found->second) == rows);
    }
  }
}

RC_GTEST_PROP(AttentionPlan, Threads_TakeEveryTileOnceAndEqualShares, ()) {
  const Batch batch = random_batch();
  const auto threads = *rc::gen::inRange<std::int64_t>(1, 70);
  AttentionPlan plan;
  make_plan(batch.params, {}, plan);
  std::vector<std::int64_t> load(static_cast<std::size_t>(threads), 0);
  std::int64_t widest = 0;
  for (const WorkItem& item : plan.items) {
    RC_ASSERT(plan.tile_begin(item, 0, threads) == item.first_tile);
    RC_ASSERT(plan.tile_begin(item, threads, threads) == item.last_tile);
    for (std::int64_t thread = 0; thread < threads; ++thread) {
      const std::int64_t tiles =
          plan.tile_begin(item, thread + 1, threads) - plan.tile_begin(item, thread, threads);
      RC_ASSERT(tiles >= 0);
      load[static_cast<std::size_t>(thread)] += tiles * item.rows();
    }
    if (item.tiles() > 0) widest = std::max(widest, item.rows());
  }
  const auto [least, most] = std::minmax_element(load.begin(), load.end());
  // A tile at either end of a share may fall to the neighbour.
  RC_ASSERT(*most - *least <= 2 * widest + 1);
}

RC_GTEST_PROP(AttentionPlan, SplitParts_AreExactlyTheSharedItems, ()) {
  const Batch batch = random_batch();
  const auto threads = *rc::gen::inRange<std::int64_t>(1, 70);
  AttentionPlan plan;
  make_plan(batch.params, {}, plan);
  const std::vector<SplitPart> parts = split_parts(plan, threads);
  std::size_t next = 0;
  std::int64_t states = 0;
  for (std::size_t index = 0; index < plan.items.size(); ++index) {
    const WorkItem& item = plan.items[index];
    std::vector<SlotRange> shares;
    for (std::int64_t thread = 0; thread < threads; ++thread) {
      const SlotRange share{.first = plan.tile_begin(item, thread, threads),
                            .last = plan.tile_begin(item, thread + 1, threads)};
      if (!share.empty()) shares.push_back(share);
    }
    if (shares.size() < 2) continue;
    for (std::size_t i = 0; i < shares.size(); ++i, ++next) {
      RC_ASSERT(next < parts.size());
      RC_ASSERT(parts[next].item == index);
      RC_ASSERT(parts[next].first_tile == shares[i].first);
      RC_ASSERT(parts[next].last_tile == shares[i].last);
      RC_ASSERT(parts[next].first_state == states);
      states += item.rows() * (i == 0 ? 1 : shares[i].last - shares[i].first);
    }
  }
  RC_ASSERT(next == parts.size());
  RC_ASSERT(split_states(plan, parts) == states);
}

// One request of 100,000 tokens among 63 of 1,000: a plan by requests and heads would leave its
// eight heads to eight threads.
TEST(AttentionPlan, OneLongRequestAmongMany_IsSharedByAllThreads) {
  Batch batch;
  batch.params.geometry.num_heads = 32;
  batch.params.geometry.num_kv_heads = 8;
  batch.add(1, 100'000);
  for (int i = 0; i < 63; ++i) batch.add(1, 1000);
  AttentionPlan plan;
  make_plan(batch.params, {}, plan);
  constexpr std::int64_t kThreads = 132;
  std::int64_t most = 0;
  for (std::int64_t thread = 0; thread < kThreads; ++thread) {
    std::int64_t load = 0;
    for (const WorkItem& item : plan.items) {
      load +=
          (plan.tile_begin(item, thread + 1, kThreads) - plan.tile_begin(item, thread, kThreads)) *
          item.rows();
    }
    most = std::max(most, load);
  }
  EXPECT_LE(most, plan.total_cost / kThreads + 4 + 1);
}

TEST(AttentionPlan, Window_LeavesOutTilesBeforeIt) {
  Batch batch;
  batch.params.geometry = {.num_heads = 4, .num_kv_heads = 1, .window = 128};
  batch.add(1, 10'000);
  AttentionPlan plan;
  make_plan(batch.params, {}, plan);
  ASSERT_EQ(plan.items.size(), 1U);
  EXPECT_EQ(plan.items[0].first_tile, (10'000 - 128) / 256);
  EXPECT_EQ(plan.items[0].last_tile, 40);
}

RC_GTEST_PROP(KvShard, Slots_CountTheHeldPositions, ()) {
  const auto count = *rc::gen::inRange<std::int64_t>(1, 6);
  const auto interleave = *rc::gen::inRange<std::int64_t>(1, 20);
  for (std::int64_t rank = 0; rank < count; ++rank) {
    const KvShard shard{.rank = rank, .count = count, .interleave = interleave};
    std::int64_t held = 0;
    for (std::int64_t position = 0; position < 300; ++position) {
      RC_ASSERT(shard.slots_before(position) == held);
      if (!shard.holds(position)) continue;
      RC_ASSERT(shard.position_of(held) == position);
      ++held;
    }
  }
}

}  // namespace
}  // namespace kernelpath::attention
