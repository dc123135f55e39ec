#pragma once

#include "cli/program.h"

namespace kernelpath::cli {

// The description of llm-run for help and completions.
const Program& run_program_description();

// Resolves, loads and runs the one MODEL. Returns the exit code.
int run_generation(const Invocation& invocation);

}  // namespace kernelpath::cli
