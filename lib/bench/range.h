#pragma once

#include "base/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::bench {

// Values that one axis of a benchmark may have at most.
inline constexpr std::size_t kMostRangeValues = 4096;

// "8" → 8, "1..64*2" → 1 2 4 … 64, "2..8+3" → 2 5 8: from a first value to at most a last one, by a
// factor or a step, which has no default. Values are whole and at least 1. `where` names the option
// or field in errors (kUsage).
Result<std::vector<std::int64_t>> parse_range(std::string_view text, std::string_view where);

// The ranges of a list, one after the other.
Result<std::vector<std::int64_t>> parse_ranges(const std::vector<std::string>& texts,
                                               std::string_view where);

}  // namespace kernelpath::bench
