#pragma once

#include "config/model_config.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kernelpath::memory {

// Every reason why the weights of `model` cannot be divided evenly among so many ranks of tensor
// parallelism: inner widths that are no multiple of it, parts that cut the blocks in which values
// share a scale. Heads are not judged (more ranks than KV heads hold copies), nor is the
// vocabulary, whose parts may differ by one.
std::vector<std::string> division_faults(const config::ModelConfig& model, std::int64_t ranks);

}  // namespace kernelpath::memory
