#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace kernelpath::features {

// Words of a command line that others take the place of.
struct WordChange {
  std::size_t first = 0;  // as the command was split, before any change
  std::size_t count = 1;
  std::vector<std::string> words = {};  // instead of them; empty: they are left out
};

}  // namespace kernelpath::features
