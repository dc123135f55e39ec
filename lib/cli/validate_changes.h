#pragma once

#include "cli/validate_judge.h"
#include "features/candidates.h"

namespace kernelpath::cli {

// Makes a change of a suggestion, other than one of the command line's words: in the arguments that
// the rules see, in what the engine's resolution reads, in the environment, or of the device.
void apply_change(const features::Change& change, EngineCombination& combination);

}  // namespace kernelpath::cli
