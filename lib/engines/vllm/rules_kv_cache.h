#pragma once

#include "engines/engine.h"

#include <span>

namespace kernelpath::engines::vllm {

// Rules of the KV cache, CUDA graphs and the checks after a model is built.
std::span<const RuleInfo> kv_cache_rules();

}  // namespace kernelpath::engines::vllm
