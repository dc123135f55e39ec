#pragma once

#include "engines/request.h"
#include "engines/trtllm/profile.h"
#include "registry/loader.h"
#include "registry/registry.h"

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::trtllm {

// Modules that a question adds to those of the profile, or breaks.
struct ModuleOverrides {
  // Full module name → what importing it registers.
  std::map<std::string, std::vector<registry::Registration>, std::less<>> external;
  // Full module name → how importing it fails.
  std::map<std::string, registry::Failure, std::less<>> broken;
};

// "Imports" a module by handing out what the tables say that it registers.
class ProfileLoader : public registry::Loader {
 public:
  // `profile` must outlive the loader.
  explicit ProfileLoader(const Profile& profile, ModuleOverrides overrides = {});

  // A broken module fails as it is told. A module that nobody knows is not found under its own
  // name, or under that of its first parent package that no known module lies in, as in Python.
  registry::Loaded load(std::string_view module) override;

 private:
  [[nodiscard]] bool is_package(std::string_view name) const;
  [[nodiscard]] std::string missing_part(std::string_view module) const;

  const Profile& profile_;
  ModuleOverrides overrides_;
};

// The external providers of an environment as modules, and their names in load order.
struct ExternalModules {
  ModuleOverrides overrides;
  std::vector<std::string> order;
};
ExternalModules external_modules(std::span<const Environment::ExternalModel> rows);

}  // namespace kernelpath::engines::trtllm
