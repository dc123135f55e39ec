#pragma once

#include "attention/backend_table.h"
#include "attention/params.h"
#include "attention/plan.h"
#include "base/result.h"

#include <cstdint>
#include <span>
#include <vector>

namespace kernelpath::attention {

// What every layer of a step shares, whatever its backend.
struct CommonMetadata {
  std::span<const std::int32_t> query_start;  // [num_requests + 1]: first token row of each request
  std::span<const std::int32_t> seq_lens;     // [num_requests]: tokens, this step's included
  std::span<const std::int32_t> block_table;  // [num_requests, block_table_stride]: page ids
  std::int64_t block_table_stride = 0;
  std::int64_t page_size = 0;

  [[nodiscard]] std::int64_t num_requests() const {
    return static_cast<std::int64_t>(seq_lens.size());
  }
  [[nodiscard]] std::int64_t num_tokens() const {
    return query_start.empty() ? 0 : query_start.back();
  }
  [[nodiscard]] BatchView view() const {
    return {.num_requests = num_requests(),
            .query_start = query_start.data(),
            .seq_lens = seq_lens.data(),
            .block_table = block_table.data(),
            .block_table_stride = block_table_stride,
            .page_size = page_size};
  }
};

// Which CUDA-graph level a backend must have for this step to run from a captured graph:
// single-token decode, a batch of equal query lengths, or any batch.
GraphLevel graph_level_of(const CommonMetadata& common);

// The order of requests that puts those with at most `queries` queries first; otherwise as they
// are. For backends that run such requests with other kernels (BackendRow::decode_first_queries):
// the caller lays out the step's tokens and tables in this order.
std::vector<std::int32_t> decode_first_order(const CommonMetadata& common, std::int64_t queries);

// A step as the kernels of one kind of layers read it. Refers to the common metadata's arrays and
// to the builder's, good until the builder's next call.
struct StepMetadata {
  BatchView batch = {};
  KvShard shard = {};
  std::span<const std::int64_t> slot_mapping = {};  // [num_tokens]: see AppendParams
  std::int64_t max_query_len = 0;
  std::int64_t max_seq_len = 0;
  std::int64_t common_prefix_len = 0;
  // Requests, and their tokens, that come first because the backend asked for it; 0: any order.
  std::int64_t num_decodes = 0;
  std::int64_t num_decode_tokens = 0;
  GraphLevel graph_level = GraphLevel::kAlways;  // see graph_level_of()
  const AttentionPlan* plan = nullptr;           // null after a fast build
};

// Turns what all layers of a step share into what the layers of one backend and geometry read. One
// builder for each kind of layers (full, windowed, chunked …).
class MetadataBuilder {
 public:
  MetadataBuilder(const BackendRow& row, const Geometry& geometry, const KvShard& shard = {});

  // The first `common_prefix_len` tokens of all requests are the same rows of the cache: a promise
  // that backends may use. `fast` leaves out what only saves time in the layers (the plan), for
  // steps of which only few layers run. Errors: kInternal for metadata that contradicts itself or
  // is not in the order that the backend asks for, naming the request.
  Result<StepMetadata> build(std::int64_t common_prefix_len, const CommonMetadata& common,
                             bool fast = false);

 private:
  [[nodiscard]] Result<void> check(std::int64_t common_prefix_len,
                                   const CommonMetadata& common) const;
  [[nodiscard]] Result<void> split_decodes(const CommonMetadata& common, StepMetadata& out) const;
  void map_slots(const CommonMetadata& common);

  const BackendRow* row_;
  Geometry geometry_;
  KvShard shard_;
  std::vector<std::int64_t> slots_;
  AttentionPlan plan_;
};

}  // namespace kernelpath::attention
