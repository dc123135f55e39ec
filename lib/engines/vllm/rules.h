#pragma once

#include "engines/engine.h"

#include <span>
#include <string_view>

namespace kernelpath::engines::vllm {

// Every rule of the engine at one version: those tables of rules that this folder holds, with the
// release as the version of each file.
std::span<const RuleInfo> rules_of(std::string_view version);

}  // namespace kernelpath::engines::vllm
