#pragma once

#include "cli/program.h"

namespace kernelpath::cli {

// The description of llm-inspect for help and completions.
const Program& inspect_program();

// Answers every MODEL, or with --batch every line. Returns the exit code.
int run_inspect(const Invocation& invocation);

}  // namespace kernelpath::cli
