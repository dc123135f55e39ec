#pragma once

#include "engines/engine.h"

#include <span>

namespace kernelpath::engines::vllm {

// Rules of a run's configuration: types, hooks of model classes, checks of parallelism, what a
// layer refuses while it is built.
std::span<const RuleInfo> run_rules();

}  // namespace kernelpath::engines::vllm
