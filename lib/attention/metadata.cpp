#include "attention/metadata.h"

#include "base/checked.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>

namespace kernelpath::attention {
namespace {

std::int64_t queries_of(const CommonMetadata& common, std::int64_t request) {
  const auto at = static_cast<std::size_t>(request);
  return common.query_start[at + 1] - common.query_start[at];
}

Unexpected contradiction(std::string message) {
  return fail({.code = ErrorCode::kInternal, .message = std::move(message)});
}

}  // namespace

GraphLevel graph_level_of(const CommonMetadata& common) {
  bool uniform = true;
  for (std::int64_t r = 1; r < common.num_requests(); ++r) {
    uniform = uniform && queries_of(common, r) == queries_of(common, 0);
  }
  if (!uniform || common.num_requests() == 0) return GraphLevel::kAlways;
  return queries_of(common, 0) == 1 ? GraphLevel::kSingleTokenDecode : GraphLevel::kUniformBatch;
}

std::vector<std::int32_t> decode_first_order(const CommonMetadata& common, std::int64_t queries) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(common.num_requests()));
  std::iota(order.begin(), order.end(), 0);
  // Not the one of std::ranges, which clang 14 cannot compile.
  std::stable_partition(order.begin(), order.end(), [&](std::int32_t request) {
    return queries_of(common, request) <= queries;
  });
  return order;
}

MetadataBuilder::MetadataBuilder(const BackendRow& row, const Geometry& geometry,
                                 const KvShard& shard)
    : row_(&row), geometry_(geometry), shard_(shard) {}

Result<void> MetadataBuilder::check(std::int64_t common_prefix_len,
                                    const CommonMetadata& common) const {
  if (common.query_start.size() != common.seq_lens.size() + 1 || common.query_start[0] != 0) {
    return contradiction("query_start has one entry more than seq_lens, and begins with 0");
  }
  for (std::int64_t r = 0; r < common.num_requests(); ++r) {
    const std::int64_t seq_len = common.seq_lens[static_cast<std::size_t>(r)];
    const std::int64_t queries = queries_of(common, r);
    // A padded row of a graph has a query and no tokens.
    if (queries < 0 || seq_len < 0 || (seq_len > 0 && queries > seq_len)) {
      return contradiction(
          fmt::format("request {} has {} queries and {} tokens", r, queries, seq_len));
    }
    const std::int64_t pages = ceil_div(shard_.slots_before(seq_len), common.page_size);
    if (pages > common.block_table_stride) {
      return contradiction(fmt::format("request {} needs {} pages, and its block table has {}", r,
                                       pages, common.block_table_stride));
    }
    if (seq_len > 0 && common_prefix_len > seq_len) {
      return contradiction(fmt::format("request {} has {} tokens, fewer than the common {}", r,
                                       seq_len, common_prefix_len));
    }
  }
  return {};
}

Result<void> MetadataBuilder::split_decodes(const CommonMetadata& common, StepMetadata& out) const {
  const std::int64_t queries = row_->decode_first_queries;
  if (queries == 0) return {};
  while (out.num_decodes < common.num_requests() &&
         queries_of(common, out.num_decodes) <= queries) {
    ++out.num_decodes;
  }
  out.num_decode_tokens = common.query_start[static_cast<std::size_t>(out.num_decodes)];
  for (std::int64_t r = out.num_decodes; r < common.num_requests(); ++r) {
    if (queries_of(common, r) > queries) continue;
    return contradiction(
        fmt::format("request {} has {} queries and stands behind longer ones: {} "
                    "asks for decode_first_order()",
                    r, queries_of(common, r), row_->name));
  }
  return {};
}

void MetadataBuilder::map_slots(const CommonMetadata& common) {
  slots_.assign(static_cast<std::size_t>(common.num_tokens()), -1);
  for (std::int64_t r = 0; r < common.num_requests(); ++r) {
    const std::int64_t queries = queries_of(common, r);
    const std::int64_t first = common.seq_lens[static_cast<std::size_t>(r)] - queries;
    const std::int64_t token = common.query_start[static_cast<std::size_t>(r)];
    for (std::int64_t i = 0; i < queries; ++i) {
      if (first + i < 0 || !shard_.holds(first + i)) continue;
      const std::int64_t slot = shard_.slots_before(first + i);
      const auto entry =
          static_cast<std::size_t>(r * common.block_table_stride + slot / common.page_size);
      slots_[static_cast<std::size_t>(token + i)] =
          common.block_table[entry] * common.page_size + slot % common.page_size;
    }
  }
}

Result<StepMetadata> MetadataBuilder::build(std::int64_t common_prefix_len,
                                            const CommonMetadata& common, bool fast) {
  KERNELPATH_CHECK_OK(check(common_prefix_len, common));
  map_slots(common);
  StepMetadata out{.batch = common.view(),
                   .shard = shard_,
                   .slot_mapping = slots_,
                   .common_prefix_len = common_prefix_len,
                   .graph_level = graph_level_of(common)};
  for (std::int64_t r = 0; r < common.num_requests(); ++r) {
    out.max_query_len = std::max(out.max_query_len, queries_of(common, r));
    out.max_seq_len =
        std::max<std::int64_t>(out.max_seq_len, common.seq_lens[static_cast<std::size_t>(r)]);
  }
  KERNELPATH_CHECK_OK(split_decodes(common, out));
  if (fast) return out;
  AttentionParams params;
  params.geometry = geometry_;
  params.batch = out.batch;
  params.shard = shard_;
  make_plan(params, {}, plan_);
  out.plan = &plan_;
  return out;
}

}  // namespace kernelpath::attention
