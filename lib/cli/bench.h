#pragma once

#include "cli/program.h"

namespace kernelpath::cli {

// The description of llm-bench for help and completions.
const Program& bench_program_description();

// Measures the CASEs. Returns the exit code.
int run_benchmarks(const Invocation& invocation);

}  // namespace kernelpath::cli
