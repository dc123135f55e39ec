#pragma once

#include "engines/engine.h"
#include "engines/trtllm/rules_backend.h"

#include <span>
#include <string_view>
#include <vector>

namespace kernelpath::engines::trtllm {

// Rules of the whole path that belong to no single part: final values of arguments, the KV cache's
// dtype, layers without attention, the memory of a rank.
std::span<const RuleInfo> engine_rules();

// Appends a step of one of engine_rules(); the rule is given in full ("TRT-ARG-FINAL").
void append_engine_step(StepDraft draft, std::vector<Step>& steps);

}  // namespace kernelpath::engines::trtllm
