#pragma once

#include "base/result.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace kernelpath {

// Reads "512", "64KiB", "80GiB" (binary) or "80GB" (decimal), a non-negative number of bytes.
// Bare "K", "M", "G" are refused: engines disagree about them (vLLM reads 1k and 1K differently).
Result<std::int64_t> parse_bytes(std::string_view text);

// "16.0 GiB", "128 KiB", "12 B": binary units, one decimal unless the number is whole.
std::string format_bytes(std::int64_t bytes);

// Reads a whole decimal integer; nothing else may stand beside it.
Result<std::int64_t> parse_integer(std::string_view text);

}  // namespace kernelpath
