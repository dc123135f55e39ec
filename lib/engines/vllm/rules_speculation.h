#pragma once

#include "engines/engine.h"

#include <span>

namespace kernelpath::engines::vllm {

// Rules of speculative decoding: the method, the draft's class and layers, the model runner.
std::span<const RuleInfo> speculation_rules();

}  // namespace kernelpath::engines::vllm
