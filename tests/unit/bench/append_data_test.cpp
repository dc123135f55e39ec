#include "bench/append_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>

namespace kernelpath::bench {
namespace {

Shape append_shape(attention::KvLayout order) {
  Shape out;
  out.kind = CaseKind::kKvAppend;
  out.geometry = {.num_heads = 2, .num_kv_heads = 2, .head_dim = 4, .v_head_dim = 4};
  out.page_size = 8;
  out.layout = order;
  out.batch = 3;
  return out;
}

TEST(AppendSlots, Launches_WriteSlotsOfTheirOwn) {
  const Shape shape = append_shape(attention::KvLayout::kNhd);
  constexpr std::int64_t kCopies = 5;
  const std::vector<std::int64_t> slots = append_slots(shape, kCopies);
  ASSERT_EQ(slots.size(), 15U);
  EXPECT_EQ(std::set(slots.begin(), slots.end()).size(), 15U);
  EXPECT_EQ(append_pages(shape, kCopies), 2);
  EXPECT_LT(*std::ranges::max_element(slots), 2 * shape.page_size);
}

class CompareAppended : public ::testing::TestWithParam<attention::KvLayout> {
 protected:
  // A cache of one page in which slots 6 and 1 hold 0 … 7 and 8 … 15.
  void SetUp() override {
    layout_ = page_layout(append_shape(GetParam()), 4);
    cache_.assign(static_cast<std::size_t>(layout_.page_elements()), -1.0F);
    expected_.resize(16);
    std::iota(expected_.begin(), expected_.end(), 0.0F);
    std::size_t next = 0;
    for (const std::int64_t slot : slots_) {
      for (std::int64_t head = 0; head < 2; ++head) {
        for (std::int64_t i = 0; i < 4; ++i) value(slot, head, i) = expected_[next++];
      }
    }
  }

  // By the definitions of the layouts.
  float& value(std::int64_t slot, std::int64_t head, std::int64_t i) {
    const bool by_head = GetParam() == attention::KvLayout::kHnd;
    const std::int64_t row = by_head ? head * 8 + slot : slot * 2 + head;
    return cache_[static_cast<std::size_t>(row * 4 + i)];
  }

  double difference() {
    Difference out;
    auto* const data = reinterpret_cast<std::byte*>(cache_.data());
    compare_appended({.layout = layout_, .data = data}, slots_, expected_.data(), out);
    return out.relative();
  }

  kv::PageLayout layout_;
  std::vector<std::int64_t> slots_ = {6, 1};
  std::vector<float> cache_;
  std::vector<float> expected_;
};

TEST_P(CompareAppended, WhatWasToBeWritten_IsEqual) { EXPECT_EQ(difference(), 0.0); }

TEST_P(CompareAppended, OneWrongElement_IsSeen) {
  value(1, 1, 3) = 30.0F;  // 15 was to be written, which is the largest
  EXPECT_EQ(difference(), 1.0);
}

INSTANTIATE_TEST_SUITE_P(BothLayouts, CompareAppended,
                         ::testing::Values(attention::KvLayout::kNhd, attention::KvLayout::kHnd),
                         [](const auto& order) {
                           return order.param == attention::KvLayout::kHnd ? "Hnd" : "Nhd";
                         });

}  // namespace
}  // namespace kernelpath::bench
