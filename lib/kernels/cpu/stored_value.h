#pragma once

#include "attention/params.h"
#include "base/float_types.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace kernelpath::kernels::cpu {

namespace stored_value {

template <class T>
T load(const std::byte* data, std::int64_t index) {
  T value{};
  std::memcpy(&value, data + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

}  // namespace stored_value

// The value of element `element` of a side of a cache, without PagedRows::scale.
inline float stored_element(const attention::PagedRows& rows, std::int64_t element) {
  using stored_value::load;
  switch (rows.type) {
    case attention::DataType::kF32:
      return load<float>(rows.data, element);
    case attention::DataType::kBf16:
      return bf16_to_f32(load<std::uint16_t>(rows.data, element));
    case attention::DataType::kF16:
      return f16_to_f32(load<std::uint16_t>(rows.data, element));
    case attention::DataType::kFp8E4m3:
      return e4m3_to_f32(load<std::uint8_t>(rows.data, element));
    case attention::DataType::kFp8E5m2:
      return e5m2_to_f32(load<std::uint8_t>(rows.data, element));
    case attention::DataType::kNvfp4: {
      const auto pair = load<std::uint8_t>(rows.data, element / 2);
      const auto code = static_cast<std::uint8_t>(element % 2 == 0 ? pair & 0xFU : pair >> 4U);
      const auto scale = load<std::uint8_t>(rows.block_scales, element / attention::kNvfp4Block);
      return e2m1_to_f32(code) * e4m3_to_f32(scale);
    }
  }
  return 0.0F;
}

// First element of the row of `slot` of request `request` for `kv_head`.
inline std::int64_t row_element(const attention::PagedRows& rows, const attention::BatchView& batch,
                                std::int64_t request, std::int64_t slot, std::int64_t kv_head) {
  const std::int64_t page =
      batch.block_table[request * batch.block_table_stride + slot / batch.page_size];
  return page * rows.page_stride + slot % batch.page_size * rows.token_stride +
         kv_head * rows.head_stride;
}

}  // namespace kernelpath::kernels::cpu
