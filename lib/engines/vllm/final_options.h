#pragma once

#include "engines/resolution.h"
#include "engines/vllm/arguments.h"
#include "engines/vllm/run.h"

namespace kernelpath::engines::vllm {

// The final value of each option that decides on attention and cache, with who set it: the user's
// option, the engine's default, or the engine itself. Then what else the user gave.
void append_final_options(const Arguments& arguments, const RunResult& run, Resolution& resolution);

}  // namespace kernelpath::engines::vllm
