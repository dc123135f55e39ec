#include "model/classes.h"

#include "base/text.h"
#include "registry/own_models.h"
#include "registry/shared_object.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kernelpath::model {
namespace {

Result<std::string> architecture_of(const config::ModelConfig& config) {
  if (!config.architectures.empty()) return config.architectures.front();
  if (config.inferred_architecture) return *config.inferred_architecture;
  return fail(Error{.code = ErrorCode::kConfigMissing,
                    .message = "no architecture is stated, and model_type stands for none",
                    .file = config.path,
                    .where = "/architectures",
                    .hint = R"(add "architectures": ["LlamaForCausalLM"], or the one it is)"});
}

Unexpected unknown_architecture(const config::ModelConfig& config, const std::string& name,
                                std::vector<std::string> near) {
  return fail(Error{.code = ErrorCode::kUsageUnknown,
                    .message = fmt::format("no model class serves {}", name),
                    .file = config.path,
                    .where = "/architectures/0",
                    .value = name,
                    .near_matches = std::move(near)});
}

}  // namespace

Result<ResolvedClass> resolve_class(const config::ModelConfig& config,
                                    std::span<const std::string> custom_module_dirs) {
  KERNELPATH_TRY(architecture, architecture_of(config));
  registry::FunctionLoader loader = registry::own_loader();
  std::vector<registry::SharedObjectProvider> providers;
  if (!custom_module_dirs.empty()) {
    KERNELPATH_TRY(loaded, registry::load_provider_folders(custom_module_dirs));
    providers = std::move(loaded);
  }
  for (const registry::SharedObjectProvider& provider : providers) {
    loader.add(provider.module, [&provider](registry::Registrar& registrar) {
      for (const registry::Registration& made : provider.registrations) {
        if (made.kind == registry::Kind::kModelClass) registrar.model_class(made.key, made.name);
      }
      return std::optional<registry::Failure>();
    });
  }
  registry::Registry classes(registry::own_index(), loader);
  for (const registry::SharedObjectProvider& provider : providers) {
    if (const auto failure = classes.import(provider.module)) {
      return fail(
          Error{.code = ErrorCode::kProvider, .message = failure->message, .file = provider.file});
    }
  }
  registry::Found found = classes.model_class(architecture);
  if (found.failure) {
    return fail(Error{.code = ErrorCode::kProvider, .message = found.failure->message});
  }
  if (!found.provider) {
    return unknown_architecture(config, architecture, classes.near_architectures(architecture));
  }
  return ResolvedClass{.architecture = architecture,
                       .class_name = found.provider->name,
                       .module = found.provider->module,
                       .events = classes.take_events()};
}

Result<const Family*> family_of(const config::ModelConfig& config, std::string_view class_name) {
  std::string name(class_name);
  if (name.empty()) {
    KERNELPATH_TRY(resolved, resolve_class(config));
    name = resolved.class_name;
  }
  const Family* const family = find_family_of_class(name);
  if (family != nullptr) return family;
  std::vector<std::string_view> known;
  known.reserve(families().size());
  for (const Family& row : families()) known.push_back(row.class_name);
  return fail(Error{.code = ErrorCode::kUsageUnknown,
                    .message = fmt::format("no class {} in this build", name),
                    .file = config.path,
                    .value = name,
                    .hint = "a provider can map an architecture to one of this build's classes",
                    .near_matches = near_matches(name, known)});
}

}  // namespace kernelpath::model
