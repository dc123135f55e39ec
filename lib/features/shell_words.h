#pragma once

#include "base/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::features {

// Splits a command line as a POSIX shell does: blanks, '…', "…", \x, and a backslash at the end of
// a line. Nothing is expanded. Error kUsage: a quote that is not closed, or an operator ( | & ; < >
// ` or
// "$(" ), for only a plain command can be read without running it.
Result<std::vector<std::string>> split_words(std::string_view text);

// A command line that splits into these words.
std::string quote_words(const std::vector<std::string>& words);

}  // namespace kernelpath::features
