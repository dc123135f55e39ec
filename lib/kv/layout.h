#pragma once

#include "attention/params.h"

#include <cstddef>
#include <cstdint>

namespace kernelpath::kv {

// How one side, K or V, of a layer lies in its pages.
struct PageLayout {
  attention::KvLayout order = attention::KvLayout::kNhd;
  attention::DataType type = attention::DataType::kF32;
  std::int64_t page_size = 0;  // tokens
  std::int64_t num_heads = 0;
  std::int64_t head_dim = 0;

  [[nodiscard]] constexpr std::int64_t page_elements() const {
    return page_size * num_heads * head_dim;
  }
  [[nodiscard]] constexpr std::int64_t token_stride() const {
    return order == attention::KvLayout::kNhd ? num_heads * head_dim : head_dim;
  }
  [[nodiscard]] constexpr std::int64_t head_stride() const {
    return order == attention::KvLayout::kNhd ? head_dim : page_size * head_dim;
  }
  [[nodiscard]] constexpr std::int64_t page_data_bytes() const {
    return attention::data_bytes(type, page_elements());
  }
  [[nodiscard]] constexpr std::int64_t page_scale_bytes() const {
    return attention::block_scale_bytes(type, page_elements());
  }
};

// The rows of a cache whose pages follow each other from `data` on, their block scales (if the type
// has any) from `block_scales` on.
constexpr attention::PagedRows paged_rows(const PageLayout& layout, std::byte* data,
                                          std::byte* block_scales = nullptr, float scale = 1.0F) {
  return {.data = data,
          .block_scales = block_scales,
          .page_stride = layout.page_elements(),
          .token_stride = layout.token_stride(),
          .head_stride = layout.head_stride(),
          .type = layout.type,
          .scale = scale};
}

// Where the token at `position` of a request lies: its page of the block table, times the page
// size, plus its slot in the page.
constexpr std::int64_t slot_of(const std::int32_t* block_table, std::int64_t position,
                               std::int64_t page_size) {
  return block_table[position / page_size] * page_size + position % page_size;
}

}  // namespace kernelpath::kv
