#include "attention/metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace kernelpath::attention {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Geometry kGeometry{.num_heads = 4, .num_kv_heads = 2, .head_dim = 8, .v_head_dim = 8};

struct Batch {
  std::vector<std::int32_t> query_start = {};
  std::vector<std::int32_t> seq_lens = {};
  std::vector<std::int32_t> block_table = {};
  std::int64_t stride = 2;

  [[nodiscard]] CommonMetadata common() const {
    return {.query_start = query_start,
            .seq_lens = seq_lens,
            .block_table = block_table,
            .block_table_stride = stride,
            .page_size = 4};
  }
};

// Two tokens of a prompt of 5, and a decode at position 3.
Batch batch() {
  return {.query_start = {0, 2, 3}, .seq_lens = {5, 4}, .block_table = {7, 3, 5, -1}};
}

TEST(MetadataBuilder, SlotMapping_FollowsTheBlockTable) {
  const Batch b = batch();
  MetadataBuilder builder(backend_row(BackendId::kFused), kGeometry);
  const auto built = builder.build(0, b.common());
  ASSERT_TRUE(built);
  EXPECT_THAT(built->slot_mapping, ElementsAre(7 * 4 + 3, 3 * 4 + 0, 5 * 4 + 3));
  EXPECT_EQ(built->max_query_len, 2);
  EXPECT_EQ(built->max_seq_len, 5);
  EXPECT_EQ(built->num_decodes, 0) << "asked for by no rule of this backend";
}

TEST(MetadataBuilder, Shard_MapsItsOwnTokensOnly) {
  const Batch b = batch();
  MetadataBuilder builder(backend_row(BackendId::kFused), kGeometry,
                          {.rank = 1, .count = 2, .interleave = 1});
  const auto built = builder.build(0, b.common());
  ASSERT_TRUE(built);
  // Of positions 3 and 4 rank 1 holds 3, as its second; of 3, again.
  EXPECT_THAT(built->slot_mapping, ElementsAre(7 * 4 + 1, -1, 5 * 4 + 1));
}

TEST(MetadataBuilder, FastBuild_LeavesOutThePlan) {
  const Batch b = batch();
  MetadataBuilder builder(backend_row(BackendId::kFused), kGeometry);
  const auto fast = builder.build(0, b.common(), /*fast=*/true);
  ASSERT_TRUE(fast);
  EXPECT_EQ(fast->plan, nullptr);
  const auto full = builder.build(0, b.common());
  ASSERT_TRUE(full);
  ASSERT_NE(full->plan, nullptr);
  EXPECT_EQ(full->plan->items.size(), 4U);
}

TEST(MetadataBuilder, PaddedRows_HaveNoSlots) {
  const Batch b{.query_start = {0, 1, 2}, .seq_lens = {1, 0}, .block_table = {0, 0, 0, 0}};
  MetadataBuilder builder(backend_row(BackendId::kFused), kGeometry);
  const auto built = builder.build(0, b.common());
  ASSERT_TRUE(built);
  EXPECT_THAT(built->slot_mapping, ElementsAre(0, -1));
}

TEST(MetadataBuilder, Contradictions_NameTheRequest) {
  MetadataBuilder builder(backend_row(BackendId::kFused), kGeometry);
  Batch short_table = batch();
  short_table.seq_lens[1] = 9;
  const auto pages = builder.build(0, short_table.common());
  ASSERT_FALSE(pages);
  EXPECT_THAT(pages.error().message, HasSubstr("request 1 needs 3 pages"));
  Batch queries = batch();
  queries.seq_lens[0] = 1;
  EXPECT_FALSE(builder.build(0, queries.common()));
  EXPECT_FALSE(builder.build(6, batch().common())) << "a common prefix longer than a request";
  EXPECT_TRUE(builder.build(4, batch().common()));
}

TEST(MetadataBuilder, BackendThatAsksForOrder_GetsDecodesFirst) {
  const BackendRow& row = backend_row(BackendId::kFlashInfer);
  ASSERT_EQ(row.decode_first_queries, 1);
  MetadataBuilder builder(row, kGeometry);
  const auto unordered = builder.build(0, batch().common());
  ASSERT_FALSE(unordered);
  EXPECT_THAT(unordered.error().message, HasSubstr("request 1"));
  EXPECT_THAT(decode_first_order(batch().common(), 1), ElementsAre(1, 0));
  const Batch ordered{.query_start = {0, 1, 3}, .seq_lens = {4, 5}, .block_table = {5, -1, 7, 3}};
  const auto built = builder.build(0, ordered.common());
  ASSERT_TRUE(built);
  EXPECT_EQ(built->num_decodes, 1);
  EXPECT_EQ(built->num_decode_tokens, 1);
}

TEST(DecodeFirstOrder, EqualRequests_KeepTheirOrder) {
  const Batch b{.query_start = {0, 1, 4, 5, 9, 10},
                .seq_lens = {9, 9, 9, 9, 9},
                .block_table = std::vector<std::int32_t>(15),
                .stride = 3};
  EXPECT_THAT(decode_first_order(b.common(), 1), ElementsAre(0, 2, 4, 1, 3));
  EXPECT_THAT(decode_first_order(b.common(), 3), ElementsAre(0, 1, 2, 4, 3));
}

TEST(GraphLevelOf, Batches_NeedTheWeakestLevelThatHoldsThem) {
  Batch b{.query_start = {0, 1, 2}, .seq_lens = {3, 4}};
  EXPECT_EQ(graph_level_of(b.common()), GraphLevel::kSingleTokenDecode);
  b.query_start = {0, 3, 6};
  EXPECT_EQ(graph_level_of(b.common()), GraphLevel::kUniformBatch);
  b.query_start = {0, 1, 3};
  EXPECT_EQ(graph_level_of(b.common()), GraphLevel::kAlways);
}

}  // namespace
}  // namespace kernelpath::attention
