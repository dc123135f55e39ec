#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::report {

// Columns that valid UTF-8 takes on a terminal: two for a CJK character, none for a combining one.
// Does not depend on the locale of the process.
std::size_t display_width(std::string_view text);

// Breaks `text` at spaces into lines of at most `width` columns; a longer word stands alone.
std::vector<std::string> wrap(std::string_view text, std::size_t width);

}  // namespace kernelpath::report
