#pragma once

#include "cli/validate_part.h"

namespace kernelpath::cli {

// Gives every error of `part` the smallest change that removes it and brings no other, and several
// errors one set of changes that removes all. Each was looked at as the report itself is made:
// resolved anew, judged by every rule, its command line read again.
void add_suggestions(const ValidateQuestion& question, const EngineQuestion& engine,
                     const Judge& judge, EnginePart& part);

}  // namespace kernelpath::cli
