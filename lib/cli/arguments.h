#pragma once

#include "base/result.h"
#include "cli/option_table.h"

#include <string>
#include <vector>

namespace kernelpath::cli {

// A command line taken apart; values are not yet read.
struct Arguments {
  // For each row of option_table(), one entry per occurrence: the value as written, "true" for a
  // flag without one, "" for --help without a word.
  std::vector<std::vector<std::string>> occurrences;
  std::vector<std::string> models;  // what is no option; "-" is standard input

  [[nodiscard]] const std::vector<std::string>& of(Option option) const {
    return occurrences[static_cast<std::size_t>(option)];
  }
};

// Takes `arguments` (without the program's name) apart. Errors: kUsageUnknown with the nearest
// options, also for an option of another program; kUsage where a value is missing.
Result<Arguments> parse_arguments(const std::vector<std::string>& arguments,
                                  ProgramKind program = ProgramKind::kInspect);

}  // namespace kernelpath::cli
