#include "kernels/cpu/append.h"

#include "base/float_types.h"
#include "kernels/cpu/stored_value.h"
#include "kernels/cpu/team.h"
#include "kv/layout.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace kernelpath::testing {
namespace {

namespace cpu = kernels::cpu;
using attention::DataType;

// A cache of two pages of four tokens, one head of 16.
class Cache {
 public:
  explicit Cache(DataType type, float scale = 1.0F)
      : layout_{.type = type, .page_size = 4, .num_heads = 1, .head_dim = 16},
        data_(static_cast<std::size_t>(2 * layout_.page_data_bytes()), std::byte{0xFF}),
        scales_(static_cast<std::size_t>(2 * layout_.page_scale_bytes()), std::byte{0xFF}),
        scale_(scale) {}

  [[nodiscard]] attention::PagedRows rows() {
    return kv::paged_rows(layout_, data_.data(), scales_.data(), scale_);
  }
  void append(const std::vector<float>& k, const std::vector<std::int64_t>& slots,
              const cpu::Team& team = {}) {
    cpu::paged_append(team, {.num_tokens = static_cast<std::int64_t>(slots.size()),
                             .num_kv_heads = 1,
                             .head_dim = 16,
                             .k = k.data(),
                             .slot_mapping = slots.data(),
                             .page_size = 4,
                             .k_rows = rows()});
  }
  // Element `d` of the row of `slot`, its scale included.
  [[nodiscard]] float at(std::int64_t slot, std::int64_t d) {
    return cpu::stored_element(rows(), slot * 16 + d) * scale_;
  }
  [[nodiscard]] const std::vector<std::byte>& bytes() const { return data_; }

 private:
  kv::PageLayout layout_;
  std::vector<std::byte> data_;
  std::vector<std::byte> scales_;
  float scale_;
};

std::vector<float> row(float value) { return std::vector<float>(16, value); }

TEST(PagedAppend, SlotMapping_PlacesRowsAndSkipsNegativeSlots) {
  Cache cache(DataType::kF32);
  std::vector<float> k = row(1.0F);
  for (const float value : {2.0F, 3.0F}) {
    const std::vector<float> more = row(value);
    k.insert(k.end(), more.begin(), more.end());
  }
  cache.append(k, {6, -1, 0});
  EXPECT_EQ(cache.at(6, 15), 1.0F);
  EXPECT_EQ(cache.at(0, 0), 3.0F);
  for (const std::int64_t untouched : {1, 2, 3, 4, 5, 7}) {
    EXPECT_TRUE(std::isnan(cache.at(untouched, 0)));
  }
}

TEST(PagedAppend, Fp8_SaturatesAndDividesByTheScale) {
  for (const DataType type : {DataType::kFp8E4m3, DataType::kFp8E5m2}) {
    Cache cache(type, 2.0F);
    const float largest = type == DataType::kFp8E4m3 ? 448.0F : 57344.0F;
    cache.append(row(1e9F), {0});
    EXPECT_EQ(cache.at(0, 3), 2.0F * largest);
    cache.append(row(-std::numeric_limits<float>::infinity()), {1});
    EXPECT_EQ(cache.at(1, 3), -2.0F * largest);
    cache.append(row(3.0F), {2});
    EXPECT_EQ(cache.at(2, 3), 3.0F);
    cache.append(row(std::numeric_limits<float>::quiet_NaN()), {3});
    EXPECT_TRUE(std::isnan(cache.at(3, 3)));
  }
}

TEST(PagedAppend, Nvfp4_ScalesEachBlockByItsLargest) {
  Cache cache(DataType::kNvfp4, 0.5F);
  std::vector<float> k = row(1.0F);
  k[5] = -6.0F;
  cache.append(k, {5});
  EXPECT_EQ(cache.at(5, 5), -6.0F);
  EXPECT_EQ(cache.at(5, 4), 1.0F);
}

TEST(PagedAppend, Nvfp4BlockOfZerosOrBelowItsScale_IsZeros) {
  Cache cache(DataType::kNvfp4);
  cache.append(row(0.0F), {0});
  cache.append(row(1e-20F), {1});
  EXPECT_EQ(cache.at(0, 0), 0.0F);
  EXPECT_EQ(cache.at(1, 0), 0.0F);
}

TEST(PagedAppend, Halves_RoundToNearest) {
  Cache bf16(DataType::kBf16);
  Cache f16(DataType::kF16);
  const float value = 1.0F + 0.00390625F + 1e-4F;
  bf16.append(row(value), {7});
  f16.append(row(value), {7});
  EXPECT_EQ(bf16.at(7, 0), bf16_to_f32(f32_to_bf16(value)));
  EXPECT_EQ(f16.at(7, 0), f16_to_f32(f32_to_f16(value)));
}

TEST(PagedAppend, Threads_WriteTheSameBytes) {
  for (const DataType type : attention::kDataTypes) {
    std::vector<float> k(16 * 7);
    for (std::size_t i = 0; i < k.size(); ++i) k[i] = static_cast<float>(i) * 0.37F - 20.0F;
    const std::vector<std::int64_t> slots{3, 1, 0, 7, 6, 2, 4};
    Cache one(type);
    one.append(k, slots);
    Cache many(type);
    cpu::TeamPool pool(3);
    pool.run([&](const cpu::Team& team) { many.append(k, slots, team); });
    EXPECT_EQ(one.bytes(), many.bytes()) << attention::data_type_name(type);
  }
}

}  // namespace
}  // namespace kernelpath::testing
