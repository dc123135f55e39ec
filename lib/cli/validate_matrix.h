#pragma once

#include "cli/program.h"
#include "cli/question.h"

namespace kernelpath::cli {

// --matrix: the documented features of one engine against each other, or with --matrix=AXIS,… all
// combinations of these options' values, judged. Returns the exit code; errors: kUsage….
Result<int> run_matrix(const Invocation& invocation, const ExternalModels& external_models);

}  // namespace kernelpath::cli
