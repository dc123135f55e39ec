#pragma once

#include <string_view>

namespace kernelpath::engines::vllm {

// What a variable of the engine's process changes in this resolution; empty: nothing.
// Source: envs.py, and where each is read.
std::string_view effect_of_variable(std::string_view name);

}  // namespace kernelpath::engines::vllm
