#pragma once

#include "features/facts.h"
#include "features/stated_arguments.h"
#include "features/validate.h"

#include <map>
#include <string>
#include <vector>

namespace kernelpath::features {

// What is judged: one engine's arguments, and what is known of model, device and resolution.
struct CombinationQuestion {
  const RuleTable* table = nullptr;
  StatedArguments arguments = {};
  Facts facts = {};
  Scope scope = {};
};

struct CombinationAnswer {
  std::vector<Finding> findings = {};
  Level worst = Level::kDerive;
};

// The engine's own rules.
CombinationAnswer judge_combination(const CombinationQuestion& question);

// The rules that all engines share, for the same facts: memory, log-sum-exp bases, drafts, options
// that nothing reads. Asked once for each engine whose resolution gave the facts.
CombinationAnswer judge_shared(const CombinationQuestion& question);

// The values of the fields, as judge_combination() and judge_shared() state them.
Context context_of(const CombinationQuestion& question);
Context shared_context_of(const CombinationQuestion& question);

// What the user calls the arguments that were stated, by field: "--kv_cache_dtype".
std::map<std::string, std::string> names_of(const CombinationQuestion& question);

}  // namespace kernelpath::features
