#pragma once

#include "engines/engine.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::llamacpp {

std::span<const RuleInfo> rule_table();

// A step to be; the rule is one of the table's ids.
struct StepDraft {
  std::string_view rule = {};
  Stage stage = Stage::kModelClass;
  Verdict verdict = Verdict::kNoted;
  Severity severity = Severity::kInfo;
  std::string candidate = {};
  std::string reason = {};
  std::string file = {};  // where the rule's own is too general: the class's
};
void append_step(StepDraft draft, std::vector<Step>& steps);

}  // namespace kernelpath::engines::llamacpp
