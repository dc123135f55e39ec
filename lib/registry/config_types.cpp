#include "registry/config_types.h"

#include <utility>

namespace kernelpath::registry {

bool ConfigTypes::add_if_absent(std::string model_type, std::string config_class) {
  return classes_.emplace(std::move(model_type), std::move(config_class)).second;
}

const std::string* ConfigTypes::find(std::string_view model_type) const {
  const auto found = classes_.find(model_type);
  return found == classes_.end() ? nullptr : &found->second;
}

}  // namespace kernelpath::registry
