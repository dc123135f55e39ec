#include "bench/paged_data.h"

#include "base/checked.h"
#include "bench/random_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace kernelpath::bench {
namespace {

constexpr std::uint64_t kPageSeed = 7;

std::int64_t request_pages(const Shape& shape, std::int64_t request) {
  return ceil_div(shape.contexts[static_cast<std::size_t>(request)], shape.page_size);
}

// Multiplications and additions of the reference for one row.
double reference_cost(const Shape& shape, std::int64_t position) {
  const attention::Geometry& g = shape.geometry;
  return static_cast<double>(position + 1) * static_cast<double>(g.num_heads) *
         static_cast<double>(g.head_dim + g.v_head_dim);
}

}  // namespace

std::int64_t pages_of(const Shape& shape) {
  std::int64_t out = 0;
  for (std::int64_t i = 0; i < shape.batch; ++i) out += request_pages(shape, i);
  return out;
}

PagePlan plan_pages(const Shape& shape, std::int64_t copies) {
  PagePlan out{.copies = copies};
  out.pages = pages_of(shape) * copies;
  for (std::int64_t i = 0; i < shape.batch; ++i) {
    out.stride = std::max(out.stride, request_pages(shape, i));
    out.query_start.push_back(static_cast<std::int32_t>(i * shape.query_tokens));
    out.seq_lens.push_back(static_cast<std::int32_t>(shape.contexts[static_cast<std::size_t>(i)]));
  }
  out.query_start.push_back(static_cast<std::int32_t>(shape.batch * shape.query_tokens));
  const std::vector<std::int32_t> order = random_order(out.pages, kPageSeed);
  out.block_table.assign(static_cast<std::size_t>(copies * shape.batch * out.stride), 0);
  std::size_t next = 0;
  for (std::int64_t row = 0; row < copies * shape.batch; ++row) {
    const std::int64_t pages = request_pages(shape, row % shape.batch);
    for (std::int64_t page = 0; page < pages; ++page) {
      out.block_table[static_cast<std::size_t>(row * out.stride + page)] = order[next++];
    }
  }
  return out;
}

std::vector<std::int32_t> page_order(const Shape& shape, const PagePlan& plan, std::int64_t copy) {
  std::vector<std::int32_t> out;
  const std::int32_t* const table = plan.table_of(copy);
  for (std::int64_t request = 0; request < shape.batch; ++request) {
    const std::int32_t* const row = table + request * plan.stride;
    out.insert(out.end(), row, row + request_pages(shape, request));
  }
  return out;
}

kv::PageLayout page_layout(const Shape& shape, std::int64_t head_dim) {
  return {.order = shape.layout,
          .type = shape.kv_type,
          .page_size = shape.page_size,
          .num_heads = shape.geometry.num_kv_heads,
          .head_dim = head_dim};
}

std::vector<CheckPoint> check_points(const Shape& shape) {
  constexpr double kMostCost = 1.5e9;
  constexpr std::size_t kMostPoints = 32;
  const std::int64_t rows = shape.batch * shape.query_tokens;
  const auto longest = std::ranges::max_element(shape.contexts) - shape.contexts.begin();
  std::vector<std::int64_t> wanted = {rows - 1, longest * shape.query_tokens, 0,
                                      (longest + 1) * shape.query_tokens - 1};
  for (const std::int32_t row : random_order(std::min<std::int64_t>(rows, kMostPoints), 11)) {
    // Spread over all rows.
    wanted.push_back(row *
                     std::max<std::int64_t>(rows / static_cast<std::int64_t>(kMostPoints), 1));
  }
  std::vector<CheckPoint> out;
  double cost = 0;
  std::vector<std::int64_t> taken;
  for (const std::int64_t row : wanted) {
    if (out.size() == kMostPoints || std::ranges::find(taken, row) != taken.end()) continue;
    CheckPoint point{.request = row / shape.query_tokens, .query = row % shape.query_tokens};
    point.position =
        shape.contexts[static_cast<std::size_t>(point.request)] - shape.query_tokens + point.query;
    cost += reference_cost(shape, point.position);
    if (cost > kMostCost && !out.empty()) break;
    out.push_back(point);
    taken.push_back(row);
  }
  return out;
}

std::string check_text(const Shape& shape, std::size_t points) {
  return fmt::format("float64 reference, {} of {} rows", points, shape.batch * shape.query_tokens);
}

void Difference::add(double value, double reference) {
  nan_ = nan_ || std::isnan(value) || std::isnan(reference);
  difference_ = std::max(difference_, std::abs(value - reference));
  magnitude_ = std::max(magnitude_, std::abs(reference));
}

double Difference::relative() const {
  if (nan_) return std::numeric_limits<double>::quiet_NaN();
  return magnitude_ > 0 ? difference_ / magnitude_ : difference_;
}

}  // namespace kernelpath::bench
