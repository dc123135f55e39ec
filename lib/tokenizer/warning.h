#pragma once

#include <string>

namespace kernelpath::tokenizer {

// Something in a tokenizer's files that is not what it seems; reading went on.
struct Warning {
  std::string file;
  std::string where;  // JSON pointer
  std::string message;
};

}  // namespace kernelpath::tokenizer
