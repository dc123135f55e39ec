#pragma once

#include "engines/deepinfer/fault.h"
#include "engines/engine.h"
#include "engines/resolution.h"

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

}  // namespace kernelpath::engines::deepinfer
