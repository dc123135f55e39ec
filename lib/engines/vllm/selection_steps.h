#pragma once

#include "engines/resolution.h"
#include "engines/vllm/rules_select.h"
#include "engines/vllm/selector.h"

#include <string>

namespace kernelpath::engines::vllm {

// Adds what a selection decided, in the engine's order: each rejected candidate with a step a
// reason, the choice, later candidates that would do as well, better ones that only the block size
// ruled out. `subject` says whose layers they are where a model has several kinds; may be empty.
void append_selection(const Selection& selection, const std::string& subject, StepWriter& steps);

// The same for the prefill backend of multi-head latent attention.
void append_prefill_selection(const Selection& selection, StepWriter& steps);

// Our id of a fault.
std::string_view rule_of_fault(SelectionFault fault);

// The selection's error as the engine's, with our id as its code; the selection must have one.
EngineError selection_error(const Selection& selection, bool prefill = false);

}  // namespace kernelpath::engines::vllm
