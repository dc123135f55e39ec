#pragma once

#include "attention/params.h"
#include "bench/shape.h"
#include "kv/layout.h"

#include <cstdint>
#include <vector>

// The paged cache of a shape, on whatever device: sizes and page tables.
namespace kernelpath::bench {

// Pages of all requests in one random order; `copies` sets of them, for launches by turns.
struct PagePlan {
  std::int64_t pages = 0;   // of all copies
  std::int64_t stride = 0;  // of a block table: pages of the longest request
  std::int64_t copies = 1;
  std::vector<std::int32_t> query_start = {};  // [batch + 1]
  std::vector<std::int32_t> seq_lens = {};     // [batch]
  std::vector<std::int32_t> block_table =
      {};  // [copies, batch, stride]; 0 behind a request's last page

  [[nodiscard]] const std::int32_t* table_of(std::int64_t copy) const {
    return block_table.data() + copy * static_cast<std::int64_t>(seq_lens.size()) * stride;
  }
};

// Pages that one set takes.
std::int64_t pages_of(const Shape& shape);
PagePlan plan_pages(const Shape& shape, std::int64_t copies);

// The pages of one copy in the order in which its requests have them.
std::vector<std::int32_t> page_order(const Shape& shape, const PagePlan& plan, std::int64_t copy);

kv::PageLayout page_layout(const Shape& shape, std::int64_t head_dim);

// A query row whose output is compared: of `request`, at `position`.
struct CheckPoint {
  std::int64_t request = 0;
  std::int64_t query = 0;  // of the request's new tokens
  std::int64_t position = 0;
};
// Rows to compare: the first, the longest and the last request, the first and the last of their new
// tokens, and more at random, as long as the reference takes seconds rather than minutes.
std::vector<CheckPoint> check_points(const Shape& shape);
// "float64 reference, 3 of 64 rows".
std::string check_text(const Shape& shape, std::size_t points);

// One check point as a batch of its own: one request with one query. It owns what the view names.
struct PointBatch {
  std::vector<std::int32_t> query_start = {0, 1};
  std::vector<std::int32_t> seq_lens;
  [[nodiscard]] attention::BatchView view(const std::int32_t* table, std::int64_t stride,
                                          std::int64_t page_size) const {
    return {.num_requests = 1,
            .query_start = query_start.data(),
            .seq_lens = seq_lens.data(),
            .block_table = table,
            .block_table_stride = stride,
            .page_size = page_size};
  }
};

// Largest difference over the largest magnitude, of rows that follow each other.
class Difference {
 public:
  void add(double value, double reference);
  // NaN where one of them was none.
  [[nodiscard]] double relative() const;

 private:
  double difference_ = 0;
  double magnitude_ = 0;
  bool nan_ = false;
};

}  // namespace kernelpath::bench
