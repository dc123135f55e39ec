#pragma once

#include "base/result.h"
#include "cli/settings.h"

#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::cli {

// One `key = value` of a config file.
struct ConfigEntry {
  std::string section;  // "" at the top, "llm-inspect" below [llm-inspect]
  std::string key;
  std::vector<std::string> values;  // one, or those of an array
  int line = 0;
};

// Reads the part of TOML that options and case files need: comments, [sections], and keys whose
// value is a string, number, boolean or an array of these, over as many lines as it takes. Errors
// carry line and column.
Result<std::vector<ConfigEntry>> parse_config_text(std::string_view text, const std::string& file);

// Sets what the config file states: top-level keys, then the section of `program`. A file that
// nobody named and that is not there is no error.
Result<void> apply_config_file(Settings& settings, const Arguments& arguments,
                               const ProcessEnvironment& environment, std::string_view program);

}  // namespace kernelpath::cli
