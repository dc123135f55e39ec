#pragma once

#include "engines/engine.h"

namespace kernelpath::engines {

// engine.resolve(), but for a GGUF file given to an engine that loads none: then a refusal that
// says so (Status::kUnsupported, error code GGUF-INPUT).
Resolution resolve_input(const Engine& engine, const Request& request);

// What refuses a GGUF file, for --explain and the list of rules.
const RuleInfo& gguf_input_rule();

}  // namespace kernelpath::engines
