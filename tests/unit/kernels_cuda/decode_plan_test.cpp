#include "kernels/cuda/decode_plan.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

// The plan of the CUDA decode kernels, on the host: the same functions run in the kernels.
namespace kernelpath::kernels::cuda {
namespace {

struct Batch {
  PlanShape shape;
  std::vector<RequestPlan> requests;
  std::int64_t total = 0;
  std::int64_t each = 0;  // of items that all cost the same

  [[nodiscard]] PlanLine line() const { return line_of(shape, total, each); }
  void add(std::int32_t seq_len, std::int32_t queries) {
    RequestPlan request = plan_request(shape, seq_len, 0, queries);
    request.first_cost = total;
    total += request_cost(shape, request);
    requests.push_back(request);
  }
};

PlanShape random_shape() {
  PlanShape shape;
  shape.tile_tokens = *rc::gen::element(16, 32, 64, 128);
  shape.block_rows = *rc::gen::element(8, 16, 32);
  shape.group = *rc::gen::inRange(1, 20);
  shape.num_kv_heads = *rc::gen::inRange(1, 9);
  shape.workers = *rc::gen::element(1, 2, 7, 132, 264);
  shape.item_charge = *rc::gen::inRange(0, 4);
  shape.cut_tokens = *rc::gen::element(0, 1024);
  shape.window = *rc::gen::element(0, 0, 1, 100, 1000);
  shape.chunk = *rc::gen::element(0, 0, 8, 500);
  shape.causal = *rc::gen::inRange(0, 2);
  return shape;
}

Batch random_batch() {
  Batch batch{.shape = random_shape(), .requests = {}};
  const int requests = *rc::gen::inRange(1, 30);
  if (*rc::gen::inRange(0, 3) == 0) {
    const std::int32_t seq_len = *rc::gen::inRange(0, 5000);
    const std::int32_t queries = *rc::gen::inRange(1, 9);
    for (int r = 0; r < requests; ++r) batch.add(seq_len, queries);
    batch.each = item_cost(batch.shape, batch.requests.front());
    return batch;
  }
  for (int r = 0; r < requests; ++r) {
    const bool is_long = *rc::gen::inRange(0, 8) == 0;
    const std::int32_t seq_len = *rc::gen::inRange(0, is_long ? 120'000 : 700);
    batch.add(seq_len, *rc::gen::inRange(0, 9));
  }
  return batch;
}

// Every segment of every worker, in the order in which each computes its own.
template <class Visit>
void for_each_segment(const Batch& batch, Visit visit) {
  for (std::int32_t worker = 0; worker < batch.shape.workers; ++worker) {
    const WorkerPlan plan =
        plan_worker(batch.shape, batch.requests.data(),
                    static_cast<std::int32_t>(batch.requests.size()), batch.line(), worker);
    Segment segment = plan.segment;
    for (; segment.valid(); advance(batch.shape, batch.requests.data(), plan.then, segment)) {
      visit(worker, segment);
    }
  }
}

using Item = std::pair<std::int32_t, std::int32_t>;  // request and item within it

RC_GTEST_PROP(DecodePlan, Segments_CoverEveryTileOfEveryItemOnce, ()) {
  const Batch batch = random_batch();
  std::map<Item, std::map<std::int32_t, std::int32_t>> parts;  // by first tile: the tile behind
  for_each_segment(batch, [&](std::int32_t /*worker*/, const Segment& segment) {
    RC_ASSERT(segment.last > segment.first);
    RC_ASSERT((parts[{segment.index, segment.item}].emplace(segment.first, segment.last).second));
  });
  for (std::size_t r = 0; r < batch.requests.size(); ++r) {
    for (std::int32_t item = 0; item < items_of(batch.shape, batch.requests[r]); ++item) {
      std::int32_t next = 0;
      for (const auto& [first, last] : parts[{static_cast<std::int32_t>(r), item}]) {
        RC_ASSERT(first == next);
        next = last;
      }
      RC_ASSERT(next == batch.requests[r].tiles);
    }
  }
}

RC_GTEST_PROP(DecodePlan, Workers_TakeSharesWithinOneTileOfEven, ()) {
  const Batch batch = random_batch();
  std::vector<std::int64_t> load(static_cast<std::size_t>(batch.shape.workers), 0);
  for_each_segment(batch, [&](std::int32_t worker, const Segment& segment) {
    load[static_cast<std::size_t>(worker)] += segment.last - segment.first;
  });
  const std::int32_t workers = std::max(batch.line().workers, 1);
  const std::int64_t even = batch.total / workers;
  for (const std::int64_t tiles : load) RC_ASSERT(tiles <= even + 1);
  if (batch.shape.item_charge > 0) return;  // charges are no tiles
  for (std::int32_t w = 0; w < batch.line().workers; ++w) {
    RC_ASSERT(load[static_cast<std::size_t>(w)] >= even);
  }
}

RC_GTEST_PROP(DecodePlan, SharedItems_AreKnownByAllTheirOwners, ()) {
  const Batch batch = random_batch();
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::int32_t>> owners;
  std::map<std::int32_t, int> slots;
  for_each_segment(batch, [&](std::int32_t worker, const Segment& segment) {
    owners[{segment.index, segment.item}].push_back(worker);
    if (segment.whole()) return;
    ++slots[partial_slot(worker, segment.first == 0)];
  });
  for (const auto& [slot, uses] : slots) RC_ASSERT(uses == 1);
  for_each_segment(batch, [&](std::int32_t /*worker*/, const Segment& segment) {
    const ItemOwners expected = item_owners(batch.shape, segment, batch.line());
    const auto& found = owners[{segment.index, segment.item}];
    RC_ASSERT(found.front() == expected.first);
    RC_ASSERT(found.back() == expected.last);
    RC_ASSERT(static_cast<std::int32_t>(found.size()) == expected.last - expected.first + 1);
    RC_ASSERT(segment.whole() == (found.size() == 1));
  });
}

// Who ends an item that others began waits for their parts. That ends because parts that others
// wait for are the first that a worker computes, because each ends one item at most, and because it
// waits for lower workers only.
RC_GTEST_PROP(DecodePlan, PartsThatOthersMerge_AreComputedFirst, ()) {
  const Batch batch = random_batch();
  std::int32_t last_worker = -1;
  int ended = 0;
  for_each_segment(batch, [&](std::int32_t worker, const Segment& segment) {
    const bool is_first = worker != last_worker;
    if (is_first) ended = 0;
    last_worker = worker;
    const ItemOwners owners = item_owners(batch.shape, segment, batch.line());
    if (segment.last < segment.request.tiles) RC_ASSERT(is_first);
    if (segment.first == 0) return;
    RC_ASSERT(owners.last >= worker);
    RC_ASSERT(owners.first < worker);
    if (segment.last == segment.request.tiles) RC_ASSERT(++ended == 1);
  });
}

TEST(DecodePlan, PartThatAnotherMerges_ComesFirstAndTheRestInOrder) {
  Batch batch{.shape = {.tile_tokens = 64, .workers = 3}, .requests = {}};
  for (int i = 0; i < 9; ++i) batch.add(64 * 4, 1);
  batch.add(64 * 9, 1);  // 45 tiles, 15 for each worker
  std::vector<std::tuple<std::int32_t, std::int32_t, std::int32_t>> second;
  for_each_segment(batch, [&](std::int32_t worker, const Segment& segment) {
    if (worker == 1) second.emplace_back(segment.index, segment.first, segment.last);
  });
  EXPECT_EQ(second, (std::vector<std::tuple<std::int32_t, std::int32_t, std::int32_t>>{
                        {7, 0, 2}, {3, 3, 4}, {4, 0, 4}, {5, 0, 4}, {6, 0, 4}}));
}

RC_GTEST_PROP(DecodePlan, SegmentTokens_AreTheItemsTokensOnce, ()) {
  const Batch batch = random_batch();
  std::map<Item, std::map<std::int32_t, Segment>> parts;  // by first tile
  for_each_segment(batch, [&](std::int32_t /*worker*/, const Segment& segment) {
    parts[{segment.index, segment.item}].emplace(segment.first, segment);
  });
  for (const auto& [item, segments] : parts) {
    const TokenRange seen =
        request_tokens(batch.shape, batch.requests[static_cast<std::size_t>(item.first)]);
    std::int32_t next = seen.first;
    for (const auto& [first, segment] : segments) {
      const TokenRange own = segment_tokens(batch.shape, batch.shape.tile_tokens, segment);
      if (seen.empty()) {
        RC_ASSERT(own.empty());
        continue;
      }
      RC_ASSERT(own.first == next);
      next = own.last;
    }
    if (!seen.empty()) RC_ASSERT(next == seen.last);
  }
}

RC_GTEST_PROP(DecodePlan, FirstRuns_AreThoseOfTheStepsFromTheFirstOn, ()) {
  PlanShape shape;
  shape.step_tokens = *rc::gen::element(16, 32, 64);
  const std::int32_t first = *rc::gen::inRange(0, 1000);
  const TokenRange tokens{.first = first, .last = first + *rc::gen::inRange(1, 1000)};
  const std::int32_t step = tokens.first / shape.step_tokens * shape.step_tokens;
  for (std::int32_t i = 0; i < 32; ++i) {
    const std::int32_t token = first_run_token(shape, tokens, i);
    RC_ASSERT(token >= tokens.first && token < tokens.last);
    // A token of the run, where it has one that is read.
    const std::int32_t run = step + i * kPageTokens;
    if (run + kPageTokens <= tokens.first || run >= tokens.last) continue;
    RC_ASSERT(token / kPageTokens == run / kPageTokens);
  }
}

RC_GTEST_PROP(DecodePlan, Tiles_HoldTheVisibleTokensAndNoMore, ()) {
  const PlanShape shape = random_shape();
  const std::int32_t seq_len = *rc::gen::inRange(0, 3000);
  const std::int32_t queries = *rc::gen::inRange(1, 9);
  const RequestPlan request = plan_request(shape, seq_len, 0, queries);
  const TokenRange tokens = request_tokens(shape, request);
  const bool bounded = shape.causal != 0 || shape.window > 0 || shape.chunk > 0;
  for (std::int32_t token = 0; token < seq_len; ++token) {
    bool seen = false;
    for (std::int32_t query = 0; query < queries; ++query) {
      const std::int32_t position = seq_len - queries + query;
      if (position < 0 || (bounded && token > position)) continue;
      if (shape.window > 0 && token <= position - shape.window) continue;
      if (shape.chunk > 0 && token / shape.chunk != position / shape.chunk) continue;
      seen = true;
      const TokenRange own = visible_tokens(shape, position, seq_len);
      RC_ASSERT(token >= own.first && token < own.last);
    }
    RC_ASSERT(seen == (token >= tokens.first && token < tokens.last));
  }
  if (tokens.empty()) {
    RC_ASSERT(request.tiles == 1);
  } else {
    RC_ASSERT(request.first_tile == tokens.first / shape.tile_tokens);
    RC_ASSERT(request.first_tile + request.tiles - 1 == (tokens.last - 1) / shape.tile_tokens);
  }
}

Batch alike_batch(int requests, std::int32_t seq_len, std::int32_t cut_tokens) {
  Batch batch{.shape = {.tile_tokens = 256,
                        .group = 4,
                        .num_kv_heads = 8,
                        .workers = 132,
                        .cut_tokens = cut_tokens},
              .requests = {}};
  for (int r = 0; r < requests; ++r) batch.add(seq_len, 1);
  batch.each = item_cost(batch.shape, batch.requests.front());
  return batch;
}

TEST(DecodePlan, AlikeItems_AreLeftWholeWhereThatCostsLessThanCuts) {
  const Batch batch = alike_batch(64, 4096, 1024);
  EXPECT_EQ(batch.line().workers, 128);
  for_each_segment(batch, [&](std::int32_t worker, const Segment& segment) {
    EXPECT_LT(worker, 128);
    EXPECT_TRUE(segment.whole());
  });
}

TEST(DecodePlan, AlikeItems_AreCutWhereThatCostsLess) {
  EXPECT_EQ(alike_batch(64, 4096, 0).line().workers, 132);       // cuts are free
  EXPECT_EQ(alike_batch(1024, 4096, 1024).line().workers, 132);  // 8 k tokens more for each
  EXPECT_EQ(alike_batch(60, 4096, 1024).line().workers, 132);    // 120 of 132 would be too few
  EXPECT_EQ(alike_batch(33, 4096, 1024).line().workers, 132);    // two for each as it is
}

// A plan by requests and heads would leave the eight heads of the long one to eight workers.
TEST(DecodePlan, OneLongRequestAmongManyShort_IsSpreadOverAllWorkers) {
  Batch batch{.shape = {.group = 4, .num_kv_heads = 8, .workers = 132}, .requests = {}};
  for (int i = 0; i < 63; ++i) {
    batch.add(static_cast<std::int32_t>(64 + i * std::int64_t{2654435761} % 15000), 1);
  }
  batch.add(100'000, 1);
  std::vector<std::int64_t> load(132, 0);
  for_each_segment(batch, [&](std::int32_t worker, const Segment& segment) {
    load[static_cast<std::size_t>(worker)] += segment.last - segment.first;
  });
  const auto [least, most] = std::minmax_element(load.begin(), load.end());
  EXPECT_LE(*most - *least, 1);
  EXPECT_EQ(*most, batch.total / 132 + 1);
}

TEST(DecodePlan, EmptyAndPaddedRequests_HaveOneTileOrNone) {
  Batch batch{.shape = {.group = 4, .num_kv_heads = 2, .workers = 3}, .requests = {}};
  batch.add(0, 1);  // its rows are written: o = 0, lse = -inf
  batch.add(0, 0);
  batch.add(5, 0);
  batch.add(3, 1);
  std::vector<std::tuple<std::int32_t, std::int32_t>> items;
  for_each_segment(batch, [&](std::int32_t /*worker*/, const Segment& segment) {
    items.emplace_back(segment.index, segment.item);
  });
  std::sort(items.begin(), items.end());
  EXPECT_EQ(items,
            (std::vector<std::tuple<std::int32_t, std::int32_t>>{{0, 0}, {0, 1}, {3, 0}, {3, 1}}));
}

TEST(DecodePlan, MuchWork_TakesCoarseTiles) {
  const PlanShape shape{.tile_tokens = 128, .coarse = 2, .workers = 132};
  EXPECT_EQ(choose_shape(shape, std::int64_t{4} * 132).tile_tokens, 256);
  EXPECT_EQ(choose_shape(shape, std::int64_t{4} * 132 - 1).tile_tokens, 128);
}

TEST(DecodePlan, NoQueries_NobodyWorks) {
  Batch batch{.shape = {.workers = 4}, .requests = {}};
  batch.add(100, 0);
  for_each_segment(batch, [&](std::int32_t /*worker*/, const Segment& /*segment*/) { FAIL(); });
}

// More items than a grid's y and z axes could number.
TEST(DecodePlan, HundredThousandItems_AreAllCovered) {
  Batch batch{.shape = {.num_kv_heads = 2, .workers = 132}, .requests = {}};
  for (int i = 0; i < 50'000; ++i) batch.add(1 + i % 3, 1);
  std::int64_t tiles = 0;
  for_each_segment(batch, [&](std::int32_t /*worker*/, const Segment& segment) {
    tiles += segment.last - segment.first;
  });
  EXPECT_EQ(tiles, 100'000);
}

}  // namespace
}  // namespace kernelpath::kernels::cuda
