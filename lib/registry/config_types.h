#pragma once

#include <map>
#include <string>
#include <string_view>

namespace kernelpath::registry {

// model_type → configuration class, filled when the package starts. A type that is known already
// (the installed transformers brings it) is never replaced.
class ConfigTypes {
 public:
  // False if the type was known, and then nothing changes.
  bool add_if_absent(std::string model_type, std::string config_class);
  // Null pointer if nobody knows the type.
  [[nodiscard]] const std::string* find(std::string_view model_type) const;

 private:
  std::map<std::string, std::string, std::less<>> classes_;
};

}  // namespace kernelpath::registry
