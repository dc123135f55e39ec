#pragma once

#include "engines/llamacpp/context.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace kernelpath::engines::llamacpp {

// Which layers own a part of a cache.
using LayerFilter = std::function<bool(std::int64_t)>;

// One cache of keys and values, or of keys alone.
struct Cache {
  std::string role = {};  // "full", "swa", "indexer" …
  std::int64_t cells = 0;
  std::int64_t streams = 1;
  std::vector<std::int64_t> layers = {};
  std::vector<std::int64_t> k_bytes = {};  // of each layer
  std::vector<std::int64_t> v_bytes = {};
  bool v_transposed = false;
  bool rotates_k = false;  // a Hadamard rotation before storing
  bool rotates_v = false;
  [[nodiscard]] std::int64_t k_total() const;
  [[nodiscard]] std::int64_t v_total() const;
};

// What a cache is made with, beside its layers.
struct CacheShape {
  const Hparams& hparams;  // of the model, or changed for an indexer's keys
  const ContextParams& params;
  const ContextPlan& plan;
  std::string_view constant;  // of the architecture
  std::int64_t cells = 0;
  std::int64_t streams = 1;
};

// Sizes of a cache that owns the layers that `filter` admits. A layer whose row does not fill whole
// blocks of its type, or whose size does not fit, has kTooLarge bytes.
// Source: llama.cpp 0c1e5709, src/llama-kv-cache.cpp, the constructor.
Cache make_cache(std::string role, const CacheShape& shape, const LayerFilter& filter);

// Cells of the cache of sliding layers. Source: src/llama-kv-cache-iswa.cpp.
std::int64_t window_cells(const Hparams& hparams, const ContextParams& params,
                          const ContextSizes& sizes, bool unified);

}  // namespace kernelpath::engines::llamacpp
