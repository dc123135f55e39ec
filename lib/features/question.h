#pragma once

#include "features/facts.h"
#include "features/stated_arguments.h"
#include "features/suggest.h"
#include "features/validate.h"

#include <optional>
#include <string>
#include <vector>

namespace kernelpath::features {

// What is judged: one engine's arguments, and what is known of model, device and resolution.
struct CombinationQuestion {
  const RuleTable* table = nullptr;
  StatedArguments arguments = {};
  Facts facts = {};
  Scope scope = {};
  bool suggest = false;
  SuggestOptions search = {};  // of the suggestions; its scope is the question's
};

struct JudgedFinding {
  Finding finding = {};
  std::string suggestion = {};  // empty unless asked for, or where the finding is no error
};

struct CombinationAnswer {
  std::vector<JudgedFinding> findings = {};
  std::string suggestion = {};  // that mends all errors together; empty with fewer than two
  Level worst = Level::kDerive;
};

// The engine's own rules.
CombinationAnswer judge_combination(const CombinationQuestion& question);

// The rules that all engines share, for the same facts: memory, log-sum-exp bases, drafts, options
// that nothing reads. Asked once for each engine whose resolution gave the facts.
CombinationAnswer judge_shared(const CombinationQuestion& question);

// The values of the fields, as judge_combination() states them; for --matrix.
Context context_of(const CombinationQuestion& question);

}  // namespace kernelpath::features
