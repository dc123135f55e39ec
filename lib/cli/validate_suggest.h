#pragma once

#include "cli/validate_judge.h"

#include <string>

namespace kernelpath::cli {

// Completes the suggestions of lib/features, which search over the values of options, with changes
// that only a new resolution can judge (more ranks, shorter sequences) and with leaving out
// arguments that the engine does not take. Each was validated again.
void complete_suggestions(const ValidateQuestion& question, const EngineQuestion& engine,
                          const LoadedModel* model, JudgedEngine& judged);

// What to change for an error that no rule table holds, the engine's own refusal: the first device
// on which it goes away, or that there is none.
std::string suggestion_for_refusal(const ValidateQuestion& question, const EngineQuestion& engine,
                                   const LoadedModel* model);

}  // namespace kernelpath::cli
