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

// Registries of packages do not tell "deep_gemm" from "deep-gemm".
bool is_same_package(std::string_view a, std::string_view b) {
  const auto dashed = [](char c) { return c == '_' ? '-' : c; };
  return std::ranges::equal(a, b, {}, dashed, dashed);
}

bool holds(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::any_of(names,
                             [name](const std::string& one) { return is_same_package(one, name); });
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
