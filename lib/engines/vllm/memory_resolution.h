#pragma once

#include "engines/request.h"
#include "engines/resolution.h"
#include "engines/vllm/arguments.h"
#include "engines/vllm/rules_select.h"
#include "engines/vllm/run.h"

#include <vector>

namespace kernelpath::engines::vllm {

// What sizes are counted from.
struct MemoryQuestion {
  const Request& request;
  const Arguments& arguments;
  const RunResult& run;
  const std::vector<LayerGroup>& groups;  // of the run
};

// The memory of one rank: weights, the share of the device that the engine takes, the blocks of
// the cache that fit, bytes of a token and of a sequence. With pipeline stages, of the stage that
// has most layers. Sizes that cannot be told stay unset and have a step or a note that says why.
Memory resolve_memory(const MemoryQuestion& question, StepWriter& steps);

}  // namespace kernelpath::engines::vllm
