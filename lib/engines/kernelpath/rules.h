#pragma once

#include "engines/engine.h"
#include "engines/resolution.h"
#include "engines/step_draft.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::kernelpath {

// Every rule that a Resolution of this engine can name, those of the capability table among them.
std::span<const RuleInfo> rules();

using StepDraft = StepDraftOf<Stage::kFinalValue>;
// Appends a step with its rule's source; the rule must be of the table.
void append_step(StepDraft draft, std::vector<Step>& steps);

}  // namespace kernelpath::engines::kernelpath
