#pragma once

#include "attention/params.h"

#include <cstdint>
#include <span>

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

}  // namespace kernelpath::attention
