#pragma once

#include "config/model_config.h"
#include "engines/resolution.h"
#include "engines/trtllm/attention_module.h"
#include "engines/trtllm/layer_resolution.h"

#include <optional>
#include <string>
#include <vector>

namespace kernelpath::engines::trtllm {

// One attention layer whose outer backend is known.
struct InnerKernelRequest {
  const LayerContext& layers;
  const config::Layer& layer;
  const ModuleGeometry& geometry;
  std::string selected_backend;  // "TRTLLM"
};

// Fills `group.prefill` and `group.decode` with what runs inside the outer backend, for a batch of
// --batch-size requests of one phase (8 where it is not given); another choice at other batch sizes
// becomes a note. Returns the engine's refusal where nothing serves the layer.
std::optional<EngineError> choose_inner_kernels(const InnerKernelRequest& request,
                                                LayerGroup& group, std::vector<Step>& steps);

}  // namespace kernelpath::engines::trtllm
