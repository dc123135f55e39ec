#pragma once

#include "engines/resolution.h"

#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines {

// One thing that two resolutions of the same request decide differently.
struct Difference {
  std::string aspect;  // of difference_aspects(): "backend", "page size"
  std::string where;   // whose: a kind of layers, an option; empty: the whole model's
  std::string from;    // "-" where the first has nothing of the kind
  std::string to;
  std::vector<std::string>
      rules;  // of steps that only one of the two took, as far as they explain it
};

// "error", "model class", "backend", "kernel", "page size", "KV dtype", "KV shape", "KV layout",
// "KV bytes", "CUDA graphs", "option": the order in which differences stand.
const std::vector<std::string_view>& difference_aspects();

// What an upgrade from one to the other changes. Layers are compared by kind: what the layers of a
// kind get, in both. Options that the user set are not compared; an error of one is a difference,
// and what comes after it is compared as far as it is known.
std::vector<Difference> compare(const Resolution& from, const Resolution& to);

}  // namespace kernelpath::engines
