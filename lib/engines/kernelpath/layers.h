#pragma once

#include "attention/layer_request.h"
#include "config/model_config.h"
#include "engines/kernelpath/launch.h"
#include "engines/request.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::kernelpath {

// Layers that are built alike.
struct OwnLayers {
  config::LayerKind kind = config::LayerKind::kFull;
  std::vector<std::int64_t> layers = {};                  // indices
  std::optional<attention::LayerRequest> attention = {};  // absent: layers without a cache
  std::int64_t kv_heads = 0;                              // that a rank keeps
  std::int64_t k_dim = 0;        // of a cached row; MLA: latent and rotated part
  std::int64_t v_dim = 0;        // 0: V lies inside K
  std::int64_t index_dim = 0;    // of the index keys beside a row (one, or --dcp of them)
  std::int64_t state_bytes = 0;  // of a sequence, in one layer
  std::optional<std::int64_t> window = {};  // or chunk
};

// Why layers cannot be built.
struct LayerFault {
  std::string_view rule;
  std::string reason;
};

struct OwnModelLayers {
  std::vector<OwnLayers> groups = {};
  std::vector<LayerFault> faults = {};  // all of them
};

// The layers of a model of class `model_class` for one rank, grouped. What a layer needs of its
// backend is in OwnLayers::attention.
OwnModelLayers own_layers(const Request& request, const Launch& launch,
                          std::string_view model_class);

}  // namespace kernelpath::engines::kernelpath
