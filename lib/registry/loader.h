#pragma once

#include "registry/registration.h"

#include <optional>
#include <string_view>
#include <vector>

namespace kernelpath::registry {

// What loading a module gave: its registrations in the order it made them, or the failure. A module
// that fails registers nothing.
struct Loaded {
  std::vector<Registration> registrations = {};
  std::optional<Failure> failure = {};
};

// Where modules come from. A registry asks for each module once, unless it failed.
class Loader {
 public:
  virtual ~Loader() = default;

  // `module` is a full name. A module that is not there is kModuleNotFound with its own name; a
  // missing dependency is kModuleNotFound with the dependency's name.
  virtual Loaded load(std::string_view module) = 0;
};

}  // namespace kernelpath::registry
