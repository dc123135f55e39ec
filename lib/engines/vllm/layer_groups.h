#pragma once

#include "engines/resolution.h"
#include "engines/vllm/run.h"
#include "engines/vllm/selector_input.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace kernelpath::engines::vllm {

// The layers of a run that resolve alike, in the order in which they were first built.
std::vector<LayerGroup> layer_groups(const SelectorContext& context, const RunResult& run);

// The backend that serves most attention layers, the first built where several serve as many; empty
// for a model without attention.
struct MainBackend {
  std::string name;
  std::string class_name;
};
MainBackend main_backend(const RunResult& run);

// Bytes of one token in one layer, on one rank; 0 for layers without a cache per token.
std::int64_t token_bytes(const LayerCache& cache);

}  // namespace kernelpath::engines::vllm
