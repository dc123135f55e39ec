#pragma once

#include "base/huge_memory.h"
#include "base/result.h"
#include "kv/block_manager.h"
#include "kv/layout.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace kernelpath::kv {

// The paged rows that one layer keeps.
struct LayerLayout {
  PageLayout k = {};
  std::optional<PageLayout> v = {};      // absent: V lies inside K (MLA)
  std::optional<PageLayout> index = {};  // keys of index-sparse attention
};

// Where they lie. A side that the layer does not keep has no data.
struct LayerRows {
  attention::PagedRows k = {};
  attention::PagedRows v = {};
  attention::PagedRows index = {};
};

// Bytes that one block takes in all layers, block scales included.
std::int64_t block_bytes(std::span<const LayerLayout> layers);

// Bytes of a PagedStorage of so many blocks: those, and what aligns the sides. Nothing where they
// do not fit 64 bits.
std::optional<std::int64_t> storage_bytes(std::span<const LayerLayout> layers,
                                          std::int64_t num_blocks);

// The memory of a paged cache, on the host: for each layer and side all blocks, one behind the
// other.
class PagedStorage {
 public:
  // Errors: kResource, with the size; kConfigOverflow.
  static Result<PagedStorage> allocate(std::vector<LayerLayout> layers, std::int64_t num_blocks);

  [[nodiscard]] std::int64_t num_blocks() const { return num_blocks_; }
  [[nodiscard]] std::int64_t bytes() const { return memory_.bytes(); }
  [[nodiscard]] bool huge_pages() const { return memory_.huge_pages(); }
  [[nodiscard]] std::span<const LayerRows> rows() const { return rows_; }  // one a layer

  // Copies one block in every layer.
  void copy(const BlockCopy& copy);

 private:
  // A side's elements or its block scales: `block_bytes` for each block from `data` on.
  struct Region {
    std::byte* data = nullptr;
    std::int64_t block_bytes = 0;
  };

  PagedStorage() = default;
  attention::PagedRows place(const PageLayout& layout, std::int64_t& offset);
  std::byte* take(std::int64_t block_bytes, std::int64_t& offset);

  std::int64_t num_blocks_ = 0;
  HugeMemory memory_;
  std::vector<LayerRows> rows_;
  std::vector<Region> regions_;
};

}  // namespace kernelpath::kv
