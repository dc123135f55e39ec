#include "registry/static_index.h"

namespace kernelpath::registry {

bool IndexTable::add(std::string key, std::string module) {
  if (!positions_.emplace(key, rows_.size()).second) return false;
  rows_.emplace_back(std::move(key), std::move(module));
  return true;
}

const std::string* IndexTable::find(std::string_view key) const {
  const auto found = positions_.find(key);
  return found == positions_.end() ? nullptr : &rows_[found->second].second;
}

std::string StaticIndex::full_name(std::string_view short_name) const {
  return package + "." + std::string(short_name);
}

bool StaticIndex::is_built_in(std::string_view module) const {
  if (!module.starts_with(package)) return false;
  return module.size() == package.size() || module[package.size()] == '.';
}

}  // namespace kernelpath::registry
