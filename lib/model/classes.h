#pragma once

#include "base/result.h"
#include "config/model_config.h"
#include "model/family.h"
#include "registry/registry.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::model {

// The class that serves a model's architecture, and how it was found.
struct ResolvedClass {
  std::string architecture;
  std::string class_name;
  std::string module;                   // that registered it
  std::vector<registry::Event> events;  // the registry's decisions, in their order
};

// Looks the architecture up in the registry: built-in classes, and those of the shared objects in
// `custom_module_dirs`, which win whatever the order (a provider names the class that serves an
// architecture; the class itself is one of this library).
// Errors: kConfigMissing (no architecture), kUsageUnknown (nobody serves it; near matches),
// kProvider (the provider failed), those of load_provider_folders.
Result<ResolvedClass> resolve_class(const config::ModelConfig& config,
                                    std::span<const std::string> custom_module_dirs = {});

// The family that a class name stands for; empty: that of the architecture's built-in class.
// Errors: those of resolve_class; kUsageUnknown (no such class; near matches).
Result<const Family*> family_of(const config::ModelConfig& config, std::string_view class_name);

}  // namespace kernelpath::model
