#pragma once

#include "cli/model_input.h"
#include "cli/validate_question.h"
#include "features/question.h"

#include <optional>
#include <string>

namespace kernelpath::cli {

// What an engine makes of one model; nothing of it without a model.
struct Resolved {
  std::optional<engines::Resolution> target = {};
  std::optional<engines::Resolution> draft = {};
  std::optional<std::string> draft_architecture = {};
};

// One engine's answer to a question.
struct JudgedEngine {
  Resolved resolved = {};
  features::CombinationQuestion combination = {};  // what the rules were asked
  features::CombinationAnswer own = {};            // by the engine's rules
  features::CombinationAnswer shared = {};         // by those of all engines
};

// Resolves the model, where there is one, and asks the rules. Errors: those of engine_arguments().
Result<JudgedEngine> judge_engine(const ValidateQuestion& question, const EngineQuestion& engine,
                                  const LoadedModel* model);

}  // namespace kernelpath::cli
