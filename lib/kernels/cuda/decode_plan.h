#pragma once

#include <cstdint>

// How decode attention is spread over the thread blocks of a launch. Pure and constexpr: the same
// functions run in the kernels (compiled with --expt-relaxed-constexpr) and in tests on the host.
//
// All work of a call lies on one line, in the order of requests, KV heads, blocks of query rows and
// tiles of keys. Worker i of n takes what begins in [total * i / n, total * (i + 1) / n): one
// 100k-token request among 63 short ones is spread like everything else. Heads of a request stay
// adjacent, which in NHD order makes them share memory pages.
namespace kernelpath::kernels::cuda {

// Pages that hold a multiple of so many tokens are read in runs of that many.
inline constexpr std::int32_t kPageTokens = 16;

// What a launch fixes.
struct PlanShape {
  std::int32_t tile_tokens = 64;  // tiles begin at multiples of it
  std::int32_t coarse = 1;        // where there is much work: so many times larger tiles
  std::int32_t block_rows = 8;    // query rows (query and head of a group) that share one pass
  std::int32_t group = 1;         // query heads of a KV head
  std::int32_t num_kv_heads = 1;
  std::int32_t workers = 1;      // thread blocks
  std::int32_t item_charge = 0;  // what starting an item costs, in tiles
  std::int32_t cut_tokens = 0;   // as many tokens as cutting items costs a worker; see line_of()
  std::int32_t window = 0;       // 0: none
  std::int32_t chunk = 0;        // 0: none
  std::int32_t causal = 1;
  std::int32_t step_tokens = kPageTokens;  // what a warp reads at a time; divides tile_tokens
  std::int32_t first_pages = 0;            // page numbers that a worker's plan gives

  friend bool operator==(const PlanShape&, const PlanShape&) = default;
};

// Tokens [first, last) of a request.
struct TokenRange {
  std::int32_t first = 0;
  std::int32_t last = 0;
  [[nodiscard]] constexpr bool empty() const { return first >= last; }
};

// The tokens that the query at `position` of a request with `seq_len` tokens sees; empty for padded
// rows (position < 0).
constexpr TokenRange visible_tokens(const PlanShape& shape, std::int32_t position,
                                    std::int32_t seq_len) {
  const bool bounded = shape.causal != 0 || shape.window > 0 || shape.chunk > 0;
  const std::int32_t last = bounded && position + 1 < seq_len ? position + 1 : seq_len;
  if (position < 0 || last <= 0) return {};
  std::int32_t first = 0;
  if (shape.window > 0 && position - shape.window + 1 > first) first = position - shape.window + 1;
  if (shape.chunk > 0 && position / shape.chunk * shape.chunk > first) {
    first = position / shape.chunk * shape.chunk;
  }
  return {.first = first, .last = last};
}

// A request as the plan saw it. One of no queries has no items.
struct RequestPlan {
  std::int32_t seq_len = 0;
  std::int32_t query_begin = 0;  // row of its first query
  std::int32_t num_queries = 0;
  std::int32_t first_tile = 0;
  std::int32_t tiles = 0;   // of each item; at least 1, so that a row that sees no key is written
  std::int32_t blocks = 0;  // of query rows; each has an item for every KV head
  std::int64_t first_cost = 0;  // of all requests before it
};

// The tokens that any query of the request sees. Both ends of a query's range grow with its
// position; between the first query's and the last one's lies nothing that nobody sees.
constexpr TokenRange request_tokens(const PlanShape& shape, const RequestPlan& request) {
  const std::int32_t first_position = request.seq_len - request.num_queries;
  TokenRange last = visible_tokens(shape, request.seq_len - 1, request.seq_len);
  // The first queries of a padded request may stand before position 0.
  const TokenRange first =
      visible_tokens(shape, first_position > 0 ? first_position : 0, request.seq_len);
  if (!last.empty() && first.first < last.first) last.first = first.first;
  return last;
}

constexpr RequestPlan plan_request(const PlanShape& shape, std::int32_t seq_len,
                                   std::int32_t query_begin, std::int32_t num_queries) {
  RequestPlan request{.seq_len = seq_len, .query_begin = query_begin, .num_queries = num_queries};
  const TokenRange tokens = request_tokens(shape, request);
  request.first_tile = tokens.first / shape.tile_tokens;
  request.tiles = tokens.empty() ? 1
                                 : (tokens.last + shape.tile_tokens - 1) / shape.tile_tokens -
                                       request.first_tile;
  request.blocks = (num_queries * shape.group + shape.block_rows - 1) / shape.block_rows;
  return request;
}

constexpr std::int64_t item_cost(const PlanShape& shape, const RequestPlan& request) {
  return static_cast<std::int64_t>(request.tiles) + shape.item_charge;
}
constexpr std::int32_t items_of(const PlanShape& shape, const RequestPlan& request) {
  return shape.num_kv_heads * request.blocks;
}
constexpr std::int64_t request_cost(const PlanShape& shape, const RequestPlan& request) {
  return item_cost(shape, request) * items_of(shape, request);
}

// Larger tiles make fewer and longer parts of items; with few tiles to a worker they would leave
// workers idle. The shape that a batch is planned with, from what it costs in coarse tiles.
inline constexpr std::int64_t kTilesToBeCoarse = 4;
constexpr PlanShape coarse_shape(PlanShape shape) {
  shape.tile_tokens *= shape.coarse;
  return shape;
}
constexpr PlanShape choose_shape(const PlanShape& shape, std::int64_t coarse_total) {
  return coarse_total >= kTilesToBeCoarse * shape.workers ? coarse_shape(shape) : shape;
}

// The line of all work: what it costs in tiles of so many tokens, and how many of the workers have
// a share of it. Each of them has at least one tile, so that those who share an item are
// neighbours.
struct PlanLine {
  std::int64_t total = 0;
  std::int32_t workers = 0;
  std::int32_t tile_tokens = 0;

  // Where the share of `worker` begins; that of worker + 1 is where it ends.
  [[nodiscard]] constexpr std::int64_t share_begin(std::int32_t worker) const {
    // total * worker passes 64 bits only beyond 2^47 tiles.
    return worker < workers ? total * worker / workers : total;
  }
  // The worker in whose share `cost` lies.
  [[nodiscard]] constexpr std::int32_t owner(std::int64_t cost) const {
    return static_cast<std::int32_t>(((cost + 1) * workers - 1) / total);
  }
};

// Work of `total` for the workers of a shape. Where all items cost the same (`each`; else 0), a few
// workers less may leave every item whole: no parts, no merges of them, and one end of an item less
// for each worker. That is worth up to `cut_tokens` of a share.
constexpr PlanLine line_of(const PlanShape& shape, std::int64_t total, std::int64_t each) {
  constexpr std::int32_t kMostIdle = 32;  // one of so many workers
  PlanLine line{.total = total, .workers = shape.workers, .tile_tokens = shape.tile_tokens};
  if (total <= shape.workers) line.workers = static_cast<std::int32_t>(total);
  if (total <= shape.workers || each <= 0) return line;
  const std::int32_t least = shape.workers - shape.workers / kMostIdle;
  for (std::int32_t workers = shape.workers; workers >= least; --workers) {
    if (total / each % workers != 0) continue;
    const std::int64_t more = total / workers - total / shape.workers;
    if (more * shape.tile_tokens <= shape.cut_tokens) line.workers = workers;
    break;
  }
  return line;
}

// Tiles [first, last) of one item (counted from the item's first), which one worker takes.
struct Segment {
  RequestPlan request = {};
  std::int32_t index = 0;  // of the request
  std::int32_t item = 0;   // within the request: KV head * blocks + block
  std::int32_t first = 0;
  std::int32_t last = 0;
  // The cost from the item's first tile to the end of what is taken in order; that is over where it
  // is 0.
  std::int32_t rest = 0;
  std::int32_t leads = 0;       // taken out of turn: the worker's `then` follows
  std::int64_t item_begin = 0;  // the cost before the item

  [[nodiscard]] constexpr std::int32_t kv_head() const {
    return request.blocks == 1 ? item : item / request.blocks;
  }
  [[nodiscard]] constexpr std::int32_t block() const {
    return request.blocks == 1 ? 0 : item % request.blocks;
  }
  [[nodiscard]] constexpr bool valid() const { return rest > 0; }
  [[nodiscard]] constexpr bool whole() const { return first == 0 && last == request.tiles; }
  // The last part of an item that other workers began.
  [[nodiscard]] constexpr bool ends_item() const { return first > 0 && last == request.tiles; }
};

// The tokens of a segment that exist and that some query sees.
constexpr TokenRange segment_tokens(const PlanShape& shape, std::int32_t tile_tokens,
                                    const Segment& segment) {
  const TokenRange seen = request_tokens(shape, segment.request);
  const std::int32_t first = (segment.request.first_tile + segment.first) * tile_tokens;
  const std::int32_t last = (segment.request.first_tile + segment.last) * tile_tokens;
  return {.first = first > seen.first ? first : seen.first,
          .last = last < seen.last ? last : seen.last};
}

// The `i`-th run of kPageTokens from the step on in which a segment begins: a token of it that is
// read, where there is one; else the segment's last. The plan looks the pages of the first runs up,
// so that a worker's first reads of K and V wait for no table.
constexpr std::int32_t first_run_token(const PlanShape& shape, TokenRange tokens, std::int32_t i) {
  const std::int32_t run = tokens.first / shape.step_tokens * shape.step_tokens + i * kPageTokens;
  const std::int32_t token = run > tokens.first ? run : tokens.first;
  return token < tokens.last ? token : tokens.last - 1;
}

// Where a worker begins: the record that it reads first.
//
// A share may end inside an item, whose last part another worker has. Its part comes first and the
// rest follows in order: parts that others merge are there long before the launch ends, and nobody
// who waits for one keeps one back.
struct WorkerPlan {
  Segment segment = {};
  PlanLine line = {};
  Segment then = {};  // after a segment that leads
};

// The first request whose work ends after `cost` < total, among `requests` with first_cost set.
constexpr std::int32_t find_request(const RequestPlan* requests, std::int32_t num_requests,
                                    std::int64_t cost) {
  std::int32_t low = 0;
  std::int32_t high = num_requests - 1;
  while (low < high) {
    const std::int32_t middle = (low + high + 1) / 2;
    if (requests[middle].first_cost <= cost) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

constexpr std::int32_t smaller(std::int32_t a, std::int32_t b) { return a < b ? a : b; }

// An item on the line.
struct ItemPlace {
  std::int32_t request = 0;
  std::int32_t item = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
constexpr ItemPlace item_place(const PlanShape& shape, const RequestPlan* requests,
                               std::int32_t num_requests, std::int64_t cost) {
  ItemPlace place;
  // Requests without items cost nothing: the last of those that begin here has the work.
  place.request = find_request(requests, num_requests, cost);
  const RequestPlan& request = requests[place.request];
  const std::int64_t each = item_cost(shape, request);
  place.item = static_cast<std::int32_t>((cost - request.first_cost) / each);
  place.begin = request.first_cost + place.item * each;
  place.end = place.begin + each;
  return place;
}

// The first segment of the run [begin, end), which begins in the item at `place`.
constexpr Segment first_segment(const PlanShape& shape, const RequestPlan* requests,
                                const ItemPlace& place, std::int64_t begin, std::int64_t end) {
  Segment segment;
  segment.index = place.request;
  segment.request = requests[place.request];
  segment.item = place.item;
  segment.item_begin = place.begin;
  const auto skipped = static_cast<std::int32_t>(begin - place.begin) - shape.item_charge;
  segment.first = skipped > 0 ? skipped : 0;
  segment.rest = static_cast<std::int32_t>(end - place.begin) - shape.item_charge;
  segment.last = smaller(segment.request.tiles, segment.rest);
  return segment;
}

constexpr WorkerPlan plan_worker(const PlanShape& shape, const RequestPlan* requests,
                                 std::int32_t num_requests, const PlanLine& line,
                                 std::int32_t worker) {
  WorkerPlan plan;
  plan.line = line;
  const std::int64_t begin = line.share_begin(worker);
  std::int64_t end = line.share_begin(worker + 1);
  if (begin >= end) return plan;
  const ItemPlace first = item_place(shape, requests, num_requests, begin);
  Segment leading;
  if (first.end < end) {
    const ItemPlace last = item_place(shape, requests, num_requests, end - 1);
    if (last.end > end) {
      leading = first_segment(shape, requests, last, last.begin, end);
      leading.leads = 1;
      end = last.begin;
    }
  }
  plan.then = first_segment(shape, requests, first, begin, end);
  // Of an item that is charged for, a share may hold nothing but the charge.
  plan.segment = leading.valid() ? leading : plan.then;
  return plan;
}

// The worker's next segment, or none where its share is over. `then`: of its plan.
constexpr void advance(const PlanShape& shape, const RequestPlan* requests, const Segment& then,
                       Segment& segment) {
  if (segment.leads != 0) {
    segment = then;
    return;
  }
  const std::int32_t cost = segment.request.tiles + shape.item_charge;
  segment.rest -= cost;
  if (segment.rest <= 0) return;
  segment.item_begin += cost;
  ++segment.item;
  if (segment.item == items_of(shape, segment.request)) {
    segment.item = 0;
    do {
      ++segment.index;
      segment.request = requests[segment.index];
    } while (segment.request.blocks == 0);
  }
  segment.first = 0;
  segment.last = smaller(segment.request.tiles, segment.rest);
}

// The workers [first, last] that share the item of a segment, in the order of their tiles.
struct ItemOwners {
  std::int32_t first = 0;
  std::int32_t last = 0;
};
constexpr ItemOwners item_owners(const PlanShape& shape, const Segment& segment,
                                 const PlanLine& line) {
  const std::int64_t first_tile = segment.item_begin + shape.item_charge;
  return {.first = line.owner(first_tile),
          .last = line.owner(first_tile + segment.request.tiles - 1)};
}

// Where a worker keeps the partial result of a shared item: at most one of its segments begins
// inside an item, and at most one ends inside the item that it began.
constexpr std::int32_t partial_slot(std::int32_t worker, bool begins_item) {
  return worker * 2 + (begins_item ? 1 : 0);
}

}  // namespace kernelpath::kernels::cuda
