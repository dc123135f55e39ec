#pragma once

#include <string>
#include <vector>

namespace kernelpath::testing {

// The options of a call after the changes of a suggestion: "--tp 4, leave out --kv, --device h200".
// `arguments` are options with one value each, --set of TensorRT-LLM among them, and models.
std::vector<std::string> with_suggestion(const std::vector<std::string>& arguments,
                                         const std::string& suggestion);

}  // namespace kernelpath::testing
