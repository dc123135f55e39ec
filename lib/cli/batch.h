#pragma once

#include "cli/program.h"
#include "cli/question.h"

namespace kernelpath::cli {

// --batch: one JSON request a line, one JSON answer a line, in order and as they come. A line that
// cannot be answered gets an error and the batch goes on. Returns the exit code: 1 if any line was
// not answered.
int run_batch(const Invocation& invocation, const ExternalModels& external_models);

}  // namespace kernelpath::cli
