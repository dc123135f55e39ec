#pragma once

#include "features/question.h"
#include "features/search.h"

namespace kernelpath::cli {

// True if the rule's findings are about arguments by themselves (ARG-…): each names one.
bool is_about_an_argument(const features::RuleTable& table, const features::Rule& rule);

// For an argument that the engine does not have: those with near names instead. For a value that it
// refuses: the choices, the bound that it crosses. Last: the argument left out.
features::Changes argument_remedies(const features::CombinationQuestion& combination,
                                    const features::Finding& finding);

// Every stated argument left out, one at a time.
features::Changes leave_out_each(const features::CombinationQuestion& combination);

}  // namespace kernelpath::cli
