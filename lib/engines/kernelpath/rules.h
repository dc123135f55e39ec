#pragma once

#include "engines/engine.h"
#include "engines/resolution.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::kernelpath {

// Every rule that a Resolution of this engine can name, those of the capability table among them.
std::span<const RuleInfo> rules();

struct StepText {
  std::string_view rule;
  Stage stage = Stage::kFinalValue;
  Verdict verdict = Verdict::kNoted;
  Severity severity = Severity::kInfo;
  std::string candidate = {};
  std::string reason;
};
// Appends a step with its rule's source; the rule must be of the table.
void append_step(StepText text, std::vector<Step>& steps);

}  // namespace kernelpath::engines::kernelpath
