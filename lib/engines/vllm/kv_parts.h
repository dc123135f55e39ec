#pragma once

#include "engines/resolution.h"
#include "engines/vllm/kv_cache_plan.h"
#include "engines/vllm/run_plan.h"

namespace kernelpath::engines::vllm {

// What a token takes in the cache of one layer, by parts. Their bytes sum up to token_bytes().
KvParts kv_parts(const BuiltLayer& layer, const LayerCache& cache);

}  // namespace kernelpath::engines::vllm
