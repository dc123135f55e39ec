#pragma once

#include "report/blocks.h"
#include "runtime/expectation.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kernelpath::cli {

// What became of one run of --expect's file.
struct Comparison {
  std::int64_t prompt = 0;  // its id in the file
  std::string request;      // the request that was run for it
  bool finished = true;     // false: interrupted before all of its tokens were there
  std::optional<runtime::Difference> difference = {};
};

// `found`: the request's tokens.
Comparison compare_run(const runtime::ExpectedRun& run, std::string request,
                       std::span<const std::int32_t> found, bool finished);

// "equal", "differs" or "unfinished".
std::string_view verdict_of(const Comparison& comparison);

// A line each: "prompt 0: as expected".
std::string comparison_text(std::span<const Comparison> comparisons);
// The same as a table.
report::Block comparison_table(std::span<const Comparison> comparisons);

}  // namespace kernelpath::cli
