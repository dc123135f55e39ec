#pragma once

#include "engines/vllm/run_state.h"

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
  std::string fixed_backend = {};  // enum name that model code sets, without validation
};

struct LayerPlan {
  std::vector<PlannedLayer> layers;  // in the order in which they register themselves
  std::vector<std::string> unknown;  // what the class builds beside them
  std::int64_t sharing = 0;          // layers that read the cache of an earlier one
};

LayerPlan plan_layers(const RunState& state);

// state_layers.cpp: shapes and types of a state of `kind`; false where the configuration lacks the
// numbers. Source: model_executor/layers/mamba/mamba_utils.py.
bool fill_state(const RunState& state, std::string_view kind, BuiltLayer& layer);

// deepseek_v4_layers.cpp: the caches of DeepSeek V4, which asks no selector.
bool plan_deepseek_v4(RunState& state);

}  // namespace kernelpath::engines::vllm
