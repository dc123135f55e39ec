#pragma once

#include "cli/model_input.h"
#include "cli/validate_question.h"
#include "features/question.h"

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace kernelpath::cli {

// Everything that is decided for one engine: what is resolved and judged.
struct EngineCombination {
  const engines::Engine* engine = nullptr;
  EngineArguments arguments = {};
  hardware::Device device = {};
  bool named = false;  // the engine, by the user
  bool device_stated = false;
};
// Errors: those of engine_arguments().
Result<EngineCombination> engine_combination(const ValidateQuestion& question,
                                             const EngineQuestion& engine);

// What an engine makes of one model; nothing of it without a model.
struct Resolved {
  std::optional<engines::Resolution> target = {};
  std::optional<engines::Resolution> draft = {};
  features::DraftFacts draft_facts = {};
};

// One engine's answer to a question.
struct JudgedEngine {
  Resolved resolved = {};
  features::CombinationQuestion combination = {};  // what the rules are asked
};

// Resolves combinations for one model, or for none. Draft models are read once.
class Judge {
 public:
  // Both must outlive the judge; `model` may be a null pointer.
  Judge(const ValidateQuestion& question, const LoadedModel* model)
      : question_(question), model_(model) {}

  [[nodiscard]] JudgedEngine operator()(const EngineCombination& combination) const;
  [[nodiscard]] const LoadedModel* model() const { return model_; }

 private:
  [[nodiscard]] std::shared_ptr<const config::ModelConfig> draft_of(
      const EngineCombination& combination) const;
  static void resolve_draft(const EngineCombination& combination, const config::ModelConfig& draft,
                            Resolved& out);

  const ValidateQuestion& question_;
  const LoadedModel* model_;
  mutable std::map<std::string, std::shared_ptr<const config::ModelConfig>> drafts_;
};

}  // namespace kernelpath::cli
