#include "engines/trtllm/model_registry.h"

#include <algorithm>
#include <utility>

namespace kernelpath::engines::trtllm {
namespace {

using registry::Failure;
using registry::FailureKind;
using registry::Registration;

bool lies_in(std::string_view module, std::string_view package) {
  return module.size() > package.size() && module.starts_with(package) &&
         module[package.size()] == '.';
}

std::vector<Registration> registrations_of(const Environment::ExternalModel& row) {
  std::vector<Registration> out;
  if (!row.model_class.empty()) {
    out.push_back(
        {.kind = registry::Kind::kModelClass, .key = row.architecture, .name = row.model_class});
  }
  if (!row.vision_encoder.empty()) {
    Registration encoder = {.kind = registry::Kind::kVisionEncoder,
                            .key = row.architecture,
                            .name = row.vision_encoder};
    if (!row.vision_base_class.empty()) encoder.base_class = row.vision_base_class;
    out.push_back(std::move(encoder));
  }
  if (!row.draft_builder.empty()) {
    out.push_back({.kind = registry::Kind::kDraftBuilder,
                   .key = row.speculative_mode,
                   .name = row.draft_builder});
  }
  return out;
}

}  // namespace

ProfileLoader::ProfileLoader(const Profile& profile, ModuleOverrides overrides)
    : profile_(profile), overrides_(std::move(overrides)) {}

registry::Loaded ProfileLoader::load(std::string_view module) {
  if (const auto broken = overrides_.broken.find(module); broken != overrides_.broken.end()) {
    return {.failure = broken->second};
  }
  if (const auto added = overrides_.external.find(module); added != overrides_.external.end()) {
    return {.registrations = added->second};
  }
  if (const auto known = profile_.modules.find(module); known != profile_.modules.end()) {
    return {.registrations = known->second};
  }
  std::string missing = missing_part(module);
  std::string message = "No module named '" + missing + "'";
  return {.failure = Failure{.kind = FailureKind::kModuleNotFound,
                             .name = std::move(missing),
                             .message = std::move(message)}};
}

// Whether some known module lies inside `name`.
bool ProfileLoader::is_package(std::string_view name) const {
  const auto inside = [&](const auto& entry) { return lies_in(entry.first, name); };
  return std::any_of(profile_.modules.begin(), profile_.modules.end(), inside) ||
         std::any_of(overrides_.external.begin(), overrides_.external.end(), inside) ||
         std::any_of(overrides_.broken.begin(), overrides_.broken.end(), inside);
}

// Python imports a.b.c by importing a, then a.b: the first one that is not there is the one named.
std::string ProfileLoader::missing_part(std::string_view module) const {
  for (std::size_t dot = module.find('.'); dot != std::string_view::npos;
       dot = module.find('.', dot + 1)) {
    const std::string_view parent = module.substr(0, dot);
    const bool known = is_package(parent) || overrides_.external.contains(parent);
    if (!known) return std::string(parent);
  }
  return std::string(module);
}

ExternalModules external_modules(std::span<const Environment::ExternalModel> rows) {
  ExternalModules out;
  for (const Environment::ExternalModel& row : rows) {
    const auto [module, added] = out.overrides.external.try_emplace(row.module);
    if (added) out.order.push_back(row.module);
    for (Registration& registration : registrations_of(row)) {
      module->second.push_back(std::move(registration));
    }
  }
  return out;
}

}  // namespace kernelpath::engines::trtllm
