#include "bench/append_data.h"

#include "base/checked.h"
#include "bench/random_data.h"
#include "kernels/cpu/stored_value.h"

namespace kernelpath::bench {

std::int64_t append_pages(const Shape& shape, std::int64_t copies) {
  return ceil_div(shape.batch * copies, shape.page_size);
}

std::vector<std::int64_t> append_slots(const Shape& shape, std::int64_t copies) {
  constexpr std::uint64_t kSlotSeed = 3;
  const std::vector<std::int32_t> order =
      random_order(append_pages(shape, copies) * shape.page_size, kSlotSeed);
  return {order.begin(), order.begin() + shape.batch * copies};
}

// Half a step of the format at a value, over the largest value; nvfp4: of a block whose scale is
// rounded as well.
double append_bound(attention::DataType type) {
  switch (type) {
    case attention::DataType::kF32:
      return 0;
    case attention::DataType::kBf16:
      return 0x1p-8;
    case attention::DataType::kF16:
      return 0x1p-11;
    case attention::DataType::kFp8E4m3:
      return 0x1p-4;
    case attention::DataType::kFp8E5m2:
      return 0x1p-3;
    case attention::DataType::kNvfp4:
      return 0.25;
  }
  return 0;
}

void compare_appended(const AppendedSide& side, std::span<const std::int64_t> slots,
                      const float* expected, Difference& difference) {
  const kv::PageLayout& layout = side.layout;
  const attention::PagedRows rows = kv::paged_rows(layout, side.data, side.block_scales);
  for (const std::int64_t slot : slots) {
    const std::int64_t token =
        slot / layout.page_size * rows.page_stride + slot % layout.page_size * rows.token_stride;
    for (std::int64_t head = 0; head < layout.num_heads; ++head) {
      const std::int64_t row = token + head * rows.head_stride;
      for (std::int64_t i = 0; i < layout.head_dim; ++i) {
        difference.add(kernels::cpu::stored_element(rows, row + i), *expected++);
      }
    }
  }
}

}  // namespace kernelpath::bench
