#pragma once

#include "engines/deepinfer/fault.h"
#include "engines/engine.h"
#include "engines/resolution.h"
#include "engines/step_draft.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::deepinfer {

// Every rule that a Resolution of this engine can name: "DI-TOKENS-PER-BLOCK-NOT-128".
std::span<const RuleInfo> rules();

// The id of a check: "tokens-per-block-not-128" → "DI-TOKENS-PER-BLOCK-NOT-128". A fault without a
// name of its own is "DI-" and its stage.
std::string rule_id(const Fault& fault);

using StepDraft = StepDraftOf<Stage::kFinalValue>;
// Appends a step with its rule's source; the rule must be of the table.
void append_step(StepDraft draft, std::vector<Step>& steps);

}  // namespace kernelpath::engines::deepinfer
