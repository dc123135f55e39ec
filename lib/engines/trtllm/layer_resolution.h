#pragma once

#include "engines/request.h"
#include "engines/resolution.h"
#include "engines/trtllm/arguments.h"
#include "engines/trtllm/fmha_libraries.h"
#include "engines/trtllm/model_config_rules.h"

#include <optional>
#include <string>
#include <vector>

namespace kernelpath::engines::trtllm {

// What every attention layer of a model is built with.
struct LayerContext {
  const Request& request;
  const Arguments& arguments;
  std::string architecture;  // architectures[0]
  std::string backend;       // attn_backend after the merge of defaults, as spelled
  std::optional<SparseSettings> sparse;
  DataType dtype = DataType::kBf16;  // of activations
  DataType kv_dtype = DataType::kBf16;
  std::string kv_dtype_asked;       // "fp8_ds_mla" is told apart from "fp8" by its name only
  std::int64_t max_seq_len = 0;     // final
  bool max_seq_len_stated = false;  // by the user
};

// The layers of a model, in groups of layers that resolve alike. Stops at the first refusal of the
// engine, which is then `error`.
struct LayerResolution {
  std::vector<LayerGroup> groups;
  std::string backend_class;     // of the first attention layer
  std::string selected_backend;  // "TRTLLM"
  bool fell_back = false;
  std::string fallback_reason;
  std::optional<EngineError> error;
};

// Builds the attention modules as the engine does (facts 4 to 7), one per distinct layer, and
// appends every decision to `steps`.
LayerResolution resolve_layers(const LayerContext& context, std::vector<Step>& steps);

}  // namespace kernelpath::engines::trtllm
