#include "kv/paged_storage.h"

#include <gtest/gtest.h>

#include <cstring>

namespace kernelpath::kv {
namespace {

using attention::DataType;
using attention::KvLayout;

PageLayout layout_of(DataType type, std::int64_t heads, std::int64_t head_dim) {
  return {.order = KvLayout::kHnd,
          .type = type,
          .page_size = 16,
          .num_heads = heads,
          .head_dim = head_dim};
}

TEST(BlockBytes, Sides_AreCountedWithTheirScales) {
  const std::vector<LayerLayout> layers = {
      {.k = layout_of(DataType::kBf16, 2, 64), .v = layout_of(DataType::kBf16, 2, 32)},
      {.k = layout_of(DataType::kNvfp4, 1, 32), .index = layout_of(DataType::kF32, 1, 8)}};
  // 16 tokens × (2 × 64 × 2 + 2 × 32 × 2 + 32 / 2 + 32 / 16 + 8 × 4)
  EXPECT_EQ(block_bytes(layers), 16 * (256 + 128 + 16 + 2 + 32));
}

TEST(PagedStorage, Sides_DoNotOverlap) {
  const std::vector<LayerLayout> layers(
      3, {.k = layout_of(DataType::kFp8E4m3, 1, 40), .v = layout_of(DataType::kFp8E4m3, 1, 24)});
  const PagedStorage storage = PagedStorage::allocate(layers, 3).value();
  EXPECT_GE(storage.bytes(), 3 * block_bytes(layers));
  ASSERT_EQ(storage.rows().size(), 3U);
  const std::byte* end = nullptr;
  for (const LayerRows& rows : storage.rows()) {
    EXPECT_GE(rows.k.data, end);
    EXPECT_GE(rows.v.data, rows.k.data + std::ptrdiff_t{3} * 16 * 40);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(rows.v.data) % 64, 0U);
    EXPECT_EQ(rows.index.data, nullptr);
    end = rows.v.data + std::ptrdiff_t{3} * 16 * 24;
  }
}

TEST(PagedStorage, Copy_TakesElementsAndScalesOfEveryLayer) {
  const std::vector<LayerLayout> layers(2, {.k = layout_of(DataType::kNvfp4, 2, 32)});
  PagedStorage storage = PagedStorage::allocate(layers, 3).value();
  const auto fill = [&](std::int64_t block, int value) {
    for (const LayerRows& rows : storage.rows()) {
      std::memset(rows.k.data + block * 16 * 2 * 16, value, 16 * 2 * 16);
      std::memset(rows.k.block_scales + block * 16 * 2 * 2, value, 16 * 2 * 2);
    }
  };
  fill(0, 1);
  fill(1, 2);
  fill(2, 3);
  storage.copy({.from = 2, .to = 1});
  for (const LayerRows& rows : storage.rows()) {
    for (const std::byte* const data : {rows.k.data, rows.k.block_scales}) {
      const std::int64_t bytes = data == rows.k.data ? 16 * 2 * 16 : 16 * 2 * 2;
      EXPECT_EQ(data[0], std::byte{1});
      EXPECT_EQ(data[bytes - 1], std::byte{1});
      EXPECT_EQ(data[bytes], std::byte{3});
      EXPECT_EQ(data[2 * bytes - 1], std::byte{3});
      EXPECT_EQ(data[2 * bytes], std::byte{3});
    }
  }
}

TEST(PagedStorage, PageStride_Passes31Bits) {
  // Half a terabyte of addresses, of which nothing is touched but the ends.
  const std::vector<LayerLayout> layers = {{.k = layout_of(DataType::kF32, 128, 256)}};
  const Result<PagedStorage> storage = PagedStorage::allocate(layers, std::int64_t{1} << 18);
  if (!storage) GTEST_SKIP() << "no address space: " << storage.error().text();
  const attention::PagedRows& k = storage->rows()[0].k;
  const std::int64_t last = ((std::int64_t{1} << 18) - 1) * k.page_stride;
  k.data[last * 4] = std::byte{7};
  EXPECT_EQ(k.data[0], std::byte{0});
}

TEST(PagedStorage, SizeBeyond64Bits_IsAnError) {
  const std::vector<LayerLayout> layers = {{.k = layout_of(DataType::kF32, 1 << 20, 1 << 20)}};
  const Result<PagedStorage> storage = PagedStorage::allocate(layers, std::int64_t{1} << 30);
  ASSERT_FALSE(storage);
  EXPECT_EQ(storage.error().code, ErrorCode::kConfigOverflow);
}

}  // namespace
}  // namespace kernelpath::kv
