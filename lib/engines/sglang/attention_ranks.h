#pragma once

#include "engines/sglang/launch.h"

#include <cstdint>

namespace kernelpath::engines::sglang {

// Ranks that share the heads of an attention layer.
std::int64_t attention_ranks(const Launch& launch);

}  // namespace kernelpath::engines::sglang
