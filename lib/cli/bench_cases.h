#pragma once

#include "base/result.h"
#include "bench/shape.h"
#include "bench/target.h"
#include "cli/program.h"

#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::cli {

// Longest case file.
inline constexpr std::size_t kMostCaseBytes = std::size_t{1} << 20;

// The shapes that a command line asks for: CASE arguments and --case with the options of their
// axes, sections of case files, or every case of the device where nothing is named. Names behind a
// case file pick sections of it. Errors: kUsageUnknown with near matches, kUsage, kUsageConflict,
// those of reading a file, and for what it holds kInputSchema (not the TOML that is read) and
// kConfigValue.
Result<std::vector<bench::Shape>> wanted_shapes(const Invocation& invocation,
                                                const bench::Target& target);

// The shapes of one case file: a section a shape, named after it; keys before the first section
// hold for all.
Result<std::vector<bench::Shape>> read_case_file(std::string_view text, const std::string& file,
                                                 bool cuda);

}  // namespace kernelpath::cli
