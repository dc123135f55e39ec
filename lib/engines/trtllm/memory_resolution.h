#pragma once

#include "engines/resolution.h"
#include "engines/trtllm/layer_resolution.h"

#include <vector>

namespace kernelpath::engines::trtllm {

// The memory of the first rank (stage 0 of a pipeline): weights, KV bytes per token as the engine
// budgets and as it allocates them, the pool that fits, and what a sequence of the context length
// takes. Sets `kv_bytes_per_token` of each group. Sizes that cannot be told stay unset and have a
// step or a note that says why.
Memory resolve_memory(const LayerContext& context, std::vector<LayerGroup>& groups,
                      std::vector<Step>& steps);

}  // namespace kernelpath::engines::trtllm
