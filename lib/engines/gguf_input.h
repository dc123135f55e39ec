#pragma once

#include "engines/engine.h"

#include <vector>

namespace kernelpath::engines {

// engine.resolve(), but for a GGUF file given to an engine that loads none: then a refusal that
// says so (Status::kUnsupported, error code GGUF-INPUT).
Resolution resolve_input(const Engine& engine, const Request& request);

// The rules of an engine, and the refusal above where it may meet it: for --explain and --list.
std::vector<RuleInfo> listed_rules(const Engine& engine);

}  // namespace kernelpath::engines
