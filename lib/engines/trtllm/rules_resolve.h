#pragma once

#include "engines/engine.h"
#include "engines/resolution.h"
#include "registry/registry.h"

#include <span>
#include <string_view>

namespace kernelpath::engines::trtllm {

// Every rule that chooses a model class: registry, look-up, EAGLE-3 rewrite, modeling_v2,
// construction, and the codes of what the engine raises there. An id is "TRT-" and the id that the
// engine's recorded answers use.
std::span<const RuleInfo> resolve_rules();

// The rule called `id`, with or without "TRT-"; null pointer if there is none.
const RuleInfo* find_resolve_rule(std::string_view id);

// One decision as a step of a Resolution. Asserts that the table holds its rule.
Step resolve_step(const registry::Event& event);
// The step of what the engine raises.
Step resolve_error_step(const EngineError& error);

}  // namespace kernelpath::engines::trtllm
