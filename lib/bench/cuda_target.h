#pragma once

#include "base/result.h"
#include "bench/target.h"

#include <memory>
#include <string_view>

namespace kernelpath::bench {

// "cuda" → 0, "cuda:1" → 1. Error kUsage.
Result<int> cuda_index(std::string_view name);

// The cases on a CUDA device of this machine. Error kUnavailable: a build without CUDA, no driver,
// no such device.
Result<std::unique_ptr<Target>> make_cuda_target(int index);

}  // namespace kernelpath::bench
