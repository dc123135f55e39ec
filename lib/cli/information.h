#pragma once

#include "base/result.h"
#include "cli/arguments.h"
#include "cli/option_table.h"
#include "cli/settings.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Options that ask about the program instead of a model; each answer is text for standard output.

namespace kernelpath::cli {

// -h, --help or --help=WORD; nothing if nobody asked. `written` tells -h from --help.
std::optional<std::string> help_answer(const Program& program, const Arguments& arguments,
                                       const std::vector<std::string>& written);

// --version, --list, --explain, --completions, --print-config in the format asked for; nothing if
// nobody asked. Errors: kUsageUnknown with near matches.
Result<std::optional<std::string>> information_answer(const Program& program,
                                                      const Settings& settings);

std::string short_help(const Program& program);
std::string full_help(const Program& program);
// Options whose name or text mentions `word` (any case).
std::string search_help(const Program& program, std::string_view word);

std::string completion_script(const Program& program, std::string_view shell);

std::string version_text(const Program& program, bool verbose, bool json);
// Rows of one table, of the engines that --engine names. Error kUsageUnknown.
Result<std::string> list_text(const Settings& settings, std::string_view kind, bool json);
// Error kUsageUnknown with near matches.
Result<std::string> explain_text(std::string_view code, bool json);
// TOML that may be used as a config file, with the origin of each value as a comment.
std::string config_text(const Program& program, const Settings& settings, bool json);

// The words of a table that completions offer: "devices", "engines", "backends", "packages",
// "kinds", "codes", "rules".
std::vector<std::string> table_words(std::string_view table);

}  // namespace kernelpath::cli
