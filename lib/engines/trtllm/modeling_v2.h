#pragma once

#include "base/result.h"
#include "engines/trtllm/class_question.h"
#include "engines/trtllm/profile.h"
#include "registry/registry.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kernelpath::engines::trtllm {

// "off", "auto", "require"; space around it and case are ignored and blank text is off, as the
// engine's environment variable TRTLLM_MODELING_V2 is read. Error kUsageUnknown.
Result<ModelingV2Mode> parse_modeling_v2(std::string_view text);

// Outcome of the selection: a target, or none, or the engine's refusal.
struct ModelingV2Choice {
  std::optional<std::string> target = {};
  std::optional<ClassError> error = {};
};

// Decides which hand-written target, if any, takes the place of the built-in class. Judges the name
// that the checkpoint states, before the EAGLE-3 rewrite. An accepted target's module is imported,
// which fills its slot. Source: _router_index.py (argument form), gpt_oss/routing.py.
ModelingV2Choice select_modeling_v2(const ClassInput& input, const ClassOptions& options,
                                    const ModelingV2Table& table, registry::Registry& registry);

}  // namespace kernelpath::engines::trtllm
