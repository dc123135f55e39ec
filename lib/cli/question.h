#pragma once

#include "base/result.h"
#include "cli/settings.h"
#include "config/load.h"
#include "engines/engine.h"
#include "hardware/device.h"
#include "report/inspect.h"

#include <string>
#include <utility>
#include <vector>

namespace kernelpath::cli {

// One engine version and what the user decides for it.
struct EngineQuestion {
  const engines::Engine* engine = nullptr;
  engines::Deployment deployment;  // with the --set values of this engine
  engines::Environment environment;
  std::vector<std::string> warnings;  // of options that this engine does not read
  bool named = false;                 // by --engine or --command; "all" names none
  // All variables of --env, also those that this engine does not read: rules may speak of them.
  std::vector<std::pair<std::string, std::string>> variables = {};
};

// "--require ENGINE=BACKEND", checked.
struct Requirement {
  const engines::Engine* engine = nullptr;
  std::string backend;
};

// Everything that is asked of a model, read from the settings and checked against the tables.
struct Question {
  std::vector<EngineQuestion> engines;  // in registry order
  hardware::Device device;
  bool device_stated = false;  // by --device or --sm
  config::LoadOptions load;
  std::string why_not_backend;
  std::vector<Requirement> requirements;
  std::vector<std::string> lacks;
  std::vector<std::string> has;
  report::View view;  // without width and colour, which belong to a stream
};

// External providers are loaded once per process, not once per question.
using ExternalModels = std::vector<engines::Environment::ExternalModel>;

// Loads --custom-module-dirs. Errors: kProvider, kProviderAbi, kInput….
Result<ExternalModels> load_external_models(const Settings& settings);

// Errors: kUsageUnknown with near matches, kUsageConflict, kUsage.
Result<Question> make_question(const Settings& settings, const ProcessEnvironment& process,
                               const ExternalModels& external_models);

// The same for llm-validate: what an engine would refuse of it is for the rules to find.
// Errors: those of names that no engine knows.
Result<Question> make_rules_question(const Settings& settings, const ProcessEnvironment& process,
                                     const ExternalModels& external_models);

// The steps, warnings and verdicts of every engine for one model.
Result<report::InputAnswer> answer_question(const Question& question, config::ModelConfig model);

// The requirements that the answer does not meet, one sentence each.
std::vector<std::string> unmet_requirements(const Question& question,
                                            const report::InputAnswer& answer);

}  // namespace kernelpath::cli
