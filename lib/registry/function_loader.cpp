#include "registry/function_loader.h"

#include <utility>

namespace kernelpath::registry {

void Registrar::model_class(std::string architecture, std::string class_name) {
  registrations_.push_back(
      {.kind = Kind::kModelClass, .key = std::move(architecture), .name = std::move(class_name)});
}

void Registrar::vision_encoder(std::string class_name, std::string encoder,
                               std::optional<std::string> base_class) {
  registrations_.push_back({.kind = Kind::kVisionEncoder,
                            .name = std::move(encoder),
                            .base_class = std::move(base_class),
                            .model_class = std::move(class_name)});
}

void Registrar::draft_builder(std::string mode, std::string builder) {
  registrations_.push_back(
      {.kind = Kind::kDraftBuilder, .key = std::move(mode), .name = std::move(builder)});
}

void FunctionLoader::add(std::string module, Start start) {
  modules_.insert_or_assign(std::move(module), std::move(start));
}

Loaded FunctionLoader::load(std::string_view module) {
  const auto found = modules_.find(module);
  if (found == modules_.end()) {
    return {.failure = Failure{.kind = FailureKind::kModuleNotFound,
                               .name = std::string(module),
                               .message = "no module named " + std::string(module)}};
  }
  Registrar registrar;
  if (auto failure = found->second(registrar)) return {.failure = std::move(failure)};
  return {.registrations = registrar.take()};
}

}  // namespace kernelpath::registry
