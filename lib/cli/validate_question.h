#pragma once

#include "cli/question.h"
#include "features/command_line.h"
#include "features/stated_arguments.h"
#include "features/validate.h"
#include "features/yaml.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernelpath::cli {

// What llm-validate asks, read from the settings and checked against the tables.
struct ValidateQuestion {
  Question base;  // its engines all have rules
  std::optional<features::CommandReading> command = {};
  std::string command_text = {};     // that it was read from; empty: options files alone
  std::string command_engine = {};   // whose options files hold options; empty: none do
  std::string command_version = {};  // of the engine, whose options it is read by
  std::vector<features::YamlDocument> files = {};  // of --command, then --yaml: a later one wins
  features::Scope scope = {};
  bool suggest = false;
};

// Reads options files. Errors: kUsage…, kInput… with line and column.
Result<ValidateQuestion> make_validate_question(const Settings& settings,
                                                const ProcessEnvironment& process,
                                                const ExternalModels& external_models);

// Reads question.command_text, and options files that hold options, into question.command. Errors:
// those of features::read_command().
Result<void> read_command_into(ValidateQuestion& question);

// The question with its command line read by the options of this engine's version.
Result<ValidateQuestion> question_of_version(const ValidateQuestion& question,
                                             const EngineQuestion& engine);

// True if there is something to judge without a MODEL.
bool states_a_combination(const Settings& settings);

// One engine's arguments from all sources: options files, the engine's command line, our options.
struct EngineArguments {
  features::StatedArguments stated;
  engines::Deployment deployment;    // those of them that the engine's resolution reads
  engines::Environment environment;  // with the variables of --command
  // Variables that the engine does not read and its rules speak of.
  std::vector<std::pair<std::string, std::string>> judged_variables = {};
};

// Errors: kUsageUnknown (--set names no argument of the engine), kUsageConflict (an option and
// --set that differ), kUsageUnknown (a backend that the engine does not have).
Result<EngineArguments> engine_arguments(const ValidateQuestion& question,
                                         const EngineQuestion& engine);

}  // namespace kernelpath::cli
