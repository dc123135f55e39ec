#pragma once

#include "engines/deepinfer/fault.h"
#include "engines/deepinfer/model.h"
#include "engines/deepinfer/variables.h"

#include <cstdint>
#include <vector>

namespace kernelpath::engines::deepinfer {

// Which earlier layer each layer shares with; a layer that shares with none is its own source.
// Source: cross_layer.py.
struct Topology {
  std::vector<std::int64_t> index_topk;
  std::vector<std::int64_t> index_k;
  std::vector<std::int64_t> kv;

  [[nodiscard]] static bool is_source(const std::vector<std::int64_t>& map, std::int64_t layer) {
    return map[static_cast<std::size_t>(layer)] == layer;
  }
};

// Builds the maps and makes every check of the engine's layer metadata, in its order: ratios,
// sharing, candidates, prefill truncation, Engram. Source: model_metadata_utils.py.
Checked<Topology> build_topology(const Model& model, const Variables& variables);

}  // namespace kernelpath::engines::deepinfer
