#pragma once

#include "cli/program.h"

namespace kernelpath::cli {

// The description of llm-validate for help and completions.
const Program& validate_program();

// Judges every MODEL, or the combination of options alone, or with --batch every line; prints the
// reports and returns the exit code.
int run_validate(const Invocation& invocation);

}  // namespace kernelpath::cli
