#include "kv/paged_storage.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/rounding.h"

#include <cstring>

namespace kernelpath::kv {
namespace {

// A cache line: no two sides share one.
constexpr std::int64_t kAlignment = 64;

template <class Visit>
void each_side(const LayerLayout& layer, const Visit& visit) {
  visit(layer.k);
  if (layer.v) visit(*layer.v);
  if (layer.index) visit(*layer.index);
}

}  // namespace

std::int64_t block_bytes(std::span<const LayerLayout> layers) {
  std::int64_t out = 0;
  for (const LayerLayout& layer : layers) {
    each_side(layer, [&](const PageLayout& side) {
      out += side.page_data_bytes() + side.page_scale_bytes();
    });
  }
  return out;
}

std::optional<std::int64_t> storage_bytes(std::span<const LayerLayout> layers,
                                          std::int64_t num_blocks) {
  std::int64_t regions = 0;
  for (const LayerLayout& layer : layers) {
    each_side(layer,
              [&](const PageLayout& side) { regions += side.page_scale_bytes() > 0 ? 2 : 1; });
  }
  const auto blocks = checked_mul(block_bytes(layers), num_blocks);
  return blocks ? checked_add(*blocks, regions * kAlignment) : std::nullopt;
}

Result<PagedStorage> PagedStorage::allocate(std::vector<LayerLayout> layers,
                                            std::int64_t num_blocks) {
  PagedStorage out;
  out.num_blocks_ = num_blocks;
  const auto bytes = storage_bytes(layers, num_blocks);
  if (!bytes) {
    return fail({.code = ErrorCode::kConfigOverflow,
                 .message = "the size of the KV cache does not fit 64 bits"});
  }
  KERNELPATH_TRY(memory, HugeMemory::allocate(*bytes, "KV cache"));
  out.memory_ = std::move(memory);
  std::int64_t offset = 0;
  for (const LayerLayout& layer : layers) {
    LayerRows rows{.k = out.place(layer.k, offset)};
    if (layer.v) rows.v = out.place(*layer.v, offset);
    if (layer.index) rows.index = out.place(*layer.index, offset);
    out.rows_.push_back(rows);
  }
  KERNELPATH_ASSERT(offset <= out.memory_.bytes());
  return out;
}

std::byte* PagedStorage::take(std::int64_t block_bytes, std::int64_t& offset) {
  std::byte* const data = memory_.data() + offset;
  offset += round_up(block_bytes * num_blocks_, kAlignment);
  regions_.push_back({.data = data, .block_bytes = block_bytes});
  return data;
}

attention::PagedRows PagedStorage::place(const PageLayout& layout, std::int64_t& offset) {
  std::byte* const data = take(layout.page_data_bytes(), offset);
  std::byte* const scales =
      layout.page_scale_bytes() > 0 ? take(layout.page_scale_bytes(), offset) : nullptr;
  return paged_rows(layout, data, scales);
}

void PagedStorage::copy(const BlockCopy& copy) {
  for (const Region& region : regions_) {
    std::memcpy(region.data + copy.to * region.block_bytes,
                region.data + copy.from * region.block_bytes,
                static_cast<std::size_t>(region.block_bytes));
  }
}

}  // namespace kernelpath::kv
