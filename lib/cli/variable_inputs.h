#pragma once

#include "cli/validate_question.h"
#include "features/stated_arguments.h"

#include <string_view>

namespace kernelpath::cli {

// Some programs read options from the environment too (LLAMA_ARG_CTX_SIZE): such variables are
// arguments, below those of files and command lines.

// True if the variable states an option of the engine's program.
bool states_option(const ValidateQuestion& question, const EngineQuestion& engine,
                   std::string_view variable);

// The arguments over those that variables of --env, or before the program of --command, state. A
// default of the program is no statement: a variable stands above it.
features::StatedArguments over_variables(const ValidateQuestion& question,
                                         const EngineQuestion& engine,
                                         features::StatedArguments arguments);

}  // namespace kernelpath::cli
