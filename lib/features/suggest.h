#pragma once

#include "features/search.h"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace kernelpath::features {

struct SuggestOptions {
  Scope scope = {};
  Level level = Level::kError;             // what must go away: this level and worse
  std::vector<DeviceChoice> devices = {};  // in order of preference
  SearchLimits limits = {};
  std::map<std::string, std::string> names = {};  // what the user calls an argument, by field
};

// Suggestions by the rules of one table alone: nothing is resolved again.

// Changes after which `rule` holds no longer and nothing new of the level is found.
SearchResult suggest_for(const Context& context, const Rule& rule, const SuggestOptions& options);

// Changes after which nothing of the level is found at all.
SearchResult suggest_all(const Context& context, const SuggestOptions& options);

}  // namespace kernelpath::features
