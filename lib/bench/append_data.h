#pragma once

#include "bench/paged_data.h"
#include "bench/shape.h"
#include "kv/layout.h"

#include <cstdint>
#include <span>
#include <vector>

// What the cases of kv-append on all devices share.
namespace kernelpath::bench {

// Elements of one token's row of all heads.
constexpr std::int64_t token_elements(const kv::PageLayout& layout) {
  return layout.num_heads * layout.head_dim;
}

// Pages that the tokens of `copies` launches fill.
std::int64_t append_pages(const Shape& shape, std::int64_t copies);

// [copies, batch]: the slots that the launches write, each once, in random order over all pages.
std::vector<std::int64_t> append_slots(const Shape& shape, std::int64_t copies);

// How far a stored value may lie from what was to be stored, over the largest value.
double append_bound(attention::DataType type);

// One side of a cache that lies on the host.
struct AppendedSide {
  kv::PageLayout layout = {};
  std::byte* data = nullptr;
  std::byte* block_scales = nullptr;
};
// Compares what lies at `slots` with what was to be written there, `expected`
// [slots, num_heads, head_dim].
void compare_appended(const AppendedSide& side, std::span<const std::int64_t> slots,
                      const float* expected, Difference& difference);

}  // namespace kernelpath::bench
