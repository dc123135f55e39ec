#pragma once

#include "engines/vllm/run_state.h"

#include <optional>
#include <string>
#include <vector>

namespace kernelpath::engines::vllm {

// A layer that the model's class builds, before its backend is known.
struct PlannedLayer {
  BuiltLayer layer;
  // A layer inside a wrapper (chunked, encoder-only, cross attention …) asks the selector for less
  // than a plain one, and its backend's class gets the prefix.
  bool wrapped = false;
  std::string prefix = {};
  std::string attention_type = "decoder";
  bool alibi = false;
  bool alibi_sqrt = false;
  bool soft_cap = false;
  bool lookback = false;
  std::string fixed_backend = {};  // enum name that model code sets, without validation
  // A class of the model's own in the backend's place, and its implementation.
  std::string own_class = {};
  std::string own_implementation = {};
  // Latent attention with a sink: a backend without one gives way to FlashMLA's, where that runs.
  bool latent_sink = false;
};

struct LayerPlan {
  std::vector<PlannedLayer> layers;    // in the order in which they register themselves
  std::vector<std::string> unknown;    // what the class builds beside them
  std::int64_t sharing = 0;            // layers that read the cache of an earlier one
  std::optional<RunError> error = {};  // what the class refuses
};

LayerPlan plan_layers(const RunState& state);

// run_select.cpp: chooses the backend of each, in order; false where one has none.
bool build_layers(RunState& state, LayerPlan& plan);

// state_layers.cpp: shapes and types of a state of `kind`; false where the configuration lacks the
// numbers. Source: model_executor/layers/mamba/mamba_utils.py.
bool fill_state(const RunState& state, std::string_view kind, BuiltLayer& layer);

// deepseek_v4_layers.cpp: the caches of DeepSeek V4, which asks no selector.
bool plan_deepseek_v4(RunState& state);

}  // namespace kernelpath::engines::vllm
