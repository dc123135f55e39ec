#pragma once

#include "base/result.h"
#include "cli/program.h"
#include "cli/question.h"
#include "report/diff.h"

#include <string>
#include <vector>

namespace kernelpath::cli {

// Whether --diff is asked.
bool asks_for_diff(const Settings& settings);

// The settings with the two versions of --diff as the engines that are asked.
// Errors: kUsage (not two), kUsageUnknown, kUsageConflict (--engine, --require or --why-not beside
// it; twice the same version).
Result<Settings> diff_settings(const Settings& settings);

// What the two versions of the question decide differently for one model.
Result<report::DiffAnswer> answer_diff(const Question& question, config::ModelConfig model);

// --diff over the models of the command line; the exit code.
int run_diff(const Invocation& invocation, const ExternalModels& external);

}  // namespace kernelpath::cli
