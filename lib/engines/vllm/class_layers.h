#pragma once

#include "config/model_config.h"
#include "engines/vllm/model_class.h"
#include "engines/vllm/model_registry.h"

#include <string>
#include <vector>

namespace kernelpath::engines::vllm {

// What layers a model class builds, as its source tells.
struct ClassLayers {
  bool attention = false;
  bool windows = false;  // each layer has a window of its own
  bool sinks = false;
  bool soft_cap = false;
  bool alibi = false;
  bool alibi_sqrt = false;
  bool shares_cache = false;  // some layers read the cache of an earlier one
  bool value_size = false;    // V may be smaller than K
  bool encoder_only = false;  // without a mask, where the configuration says so
  bool cross = false;
  bool latent = false;
  bool indexer = false;
  bool recent_window = false;  // R-SWA
  bool lookback = false;       // chunks see the one before, which plain layers express
  bool static_sink = false;
  bool transformers = false;  // the Transformers library's layers, with the engine's attention
  // Classes that build attention in their own way: "minimax_m3", "inkling", "hy_v4"; empty: none.
  std::string own = {};
  // "mamba1", "mamba2", "short_conv", "gdn", "kda", "linear", "bailing_linear", "plamo2"; empty:
  // none.
  std::string state = {};
  // Layers of the class's own that cannot be derived here.
  std::vector<std::string> unknown = {};
};

// `found` is the class of `model`; a class that builds another registered one answers for both.
ClassLayers layers_of_class(const ModelRegistry& registry, const ModelClass& found,
                            const config::ModelConfig& model);

}  // namespace kernelpath::engines::vllm
