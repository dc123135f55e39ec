#include "engines/request.h"

#include <algorithm>

namespace kernelpath::engines {
namespace {

// The last of several settings of one name counts, as on a command line.
const std::string* last_of(const std::vector<std::pair<std::string, std::string>>& pairs,
                           std::string_view name) {
  const auto found = std::find_if(pairs.rbegin(), pairs.rend(),
                                  [&](const auto& pair) { return pair.first == name; });
  return found == pairs.rend() ? nullptr : &found->second;
}

bool holds(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

const std::string* Deployment::setting(std::string_view field) const {
  return last_of(settings, field);
}

const std::string* Environment::variable(std::string_view name) const {
  return last_of(variables, name);
}

bool Environment::available(std::string_view package, bool by_default) const {
  if (holds(lacks, package)) return false;
  return by_default || holds(has, package);
}

}  // namespace kernelpath::engines
