#pragma once

#include "cli/validate_question.h"
#include "features/search.h"

#include <optional>
#include <string>

namespace kernelpath::cli {

// What could be done about a word of --command that is wrong: for an unknown option the ones with
// near names in its place, for a bad value the choices, and the option left out. `reading` is the
// command after `changes`, `word` the one that its note is about.
features::Changes command_remedies(const ValidateQuestion& question,
                                   const features::Changes& changes,
                                   const features::CommandReading& reading,
                                   const std::string& word);

// The question with the command line's words changed; nothing if that is no command any more.
std::optional<ValidateQuestion> with_changed_command(const ValidateQuestion& question,
                                                     const features::Changes& changes);

}  // namespace kernelpath::cli
