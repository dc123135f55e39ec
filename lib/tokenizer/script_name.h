#pragma once

#include <string_view>

namespace kernelpath::tokenizer {

// Does PCRE2 know a script of this name ("Han")?
bool is_script_name(std::string_view name);

}  // namespace kernelpath::tokenizer
