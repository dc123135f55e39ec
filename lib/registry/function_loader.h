#pragma once

#include "registry/loader.h"

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace kernelpath::registry {

// What a module calls while it is loaded; the C++ form of the engine's decorators.
class Registrar {
 public:
  void model_class(std::string architecture, std::string class_name);
  // For every architecture that `class_name` has declared so far in this module.
  void vision_encoder(std::string class_name, std::string encoder,
                      std::optional<std::string> base_class = std::nullopt);
  void draft_builder(std::string mode, std::string builder);

  [[nodiscard]] std::vector<Registration> take() { return std::move(registrations_); }

 private:
  std::vector<Registration> registrations_;
};

// Modules that are functions of this program. A function returns its failure, if any; a name
// without a function is a module that is not there.
class FunctionLoader : public Loader {
 public:
  using Start = std::function<std::optional<Failure>(Registrar&)>;

  void add(std::string module, Start start);
  Loaded load(std::string_view module) override;

 private:
  std::map<std::string, Start, std::less<>> modules_;
};

}  // namespace kernelpath::registry
