#pragma once

#include "json/document.h"

#include <string>
#include <vector>

namespace kernelpath::json {

// Reads a UTF-8 text into a tree with simdjson's on-demand parser. `text` may grow in capacity (the
// parser reads padding behind the end). False if the document is refused: find_fault() knows why.
bool read_tree(std::string& text, const Limits& limits, Value& root,
               std::vector<Warning>& warnings);

}  // namespace kernelpath::json
