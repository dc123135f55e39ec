#pragma once

#include "engines/request.h"
#include "engines/resolution.h"
#include "engines/vllm/release_tables.h"

namespace kernelpath::engines::vllm {

// From a request to everything that the engine decides, in its order: arguments, model class,
// configuration with its hooks, the backend of each layer, the cache, graphs, memory. A refusal of
// the engine ends the walk and is the Resolution's error; the steps before it stay.
Resolution resolve(const Request& request, const ReleaseTables& tables);

}  // namespace kernelpath::engines::vllm
