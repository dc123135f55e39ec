#pragma once

#include "engines/engine.h"
#include "engines/step_draft.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::llamacpp {

std::span<const RuleInfo> rule_table();

using StepDraft = StepDraftOf<Stage::kModelClass>;
// Appends a step with its rule's source; the rule must be of the table.
void append_step(StepDraft draft, std::vector<Step>& steps);

}  // namespace kernelpath::engines::llamacpp
