#include "registry/drift.h"

#include <algorithm>
#include <map>

namespace kernelpath::registry {
namespace {

// Key → modules that register it, each once, in the order of the modules.
using Truth = std::map<std::string, std::vector<std::string>, std::less<>>;

void add(Truth& truth, const std::string& key, const std::string& module) {
  std::vector<std::string>& modules = truth[key];
  if (std::find(modules.begin(), modules.end(), module) == modules.end()) modules.push_back(module);
}

void compare(const std::string& table, const IndexTable& index, const Truth& truth, bool complete,
             std::vector<Drift>& out) {
  for (const auto& [key, modules] : truth) {
    if (complete && index.find(key) == nullptr) {
      out.push_back({DriftKind::kMissing, table, key, "", modules});
    }
  }
  for (const auto& [key, indexed] : index.rows()) {
    const auto found = truth.find(key);
    if (found == truth.end()) {
      out.push_back({DriftKind::kStale, table, key, indexed, {}});
      continue;
    }
    const std::vector<std::string>& modules = found->second;
    if (std::find(modules.begin(), modules.end(), indexed) == modules.end()) {
      out.push_back({DriftKind::kWrong, table, key, indexed, modules});
    }
  }
}

}  // namespace

std::string_view drift_name(DriftKind kind) {
  switch (kind) {
    case DriftKind::kMissing:
      return "missing";
    case DriftKind::kStale:
      return "stale";
    case DriftKind::kWrong:
      return "wrong module";
  }
  return "";
}

std::vector<Drift> find_drift(const StaticIndex& index, const BuiltInModules& modules) {
  Truth architectures;
  Truth classes;
  Truth spec_modes;
  for (const auto& [module, registrations] : modules) {
    for (const Registration& registration : registrations) {
      if (registration.kind == Kind::kDraftBuilder) add(spec_modes, registration.key, module);
      if (registration.kind != Kind::kModelClass) continue;
      add(architectures, registration.key, module);
      if (registration.name != kUnestablished) {
        add(classes, registration.name, module);
        continue;
      }
      for (const auto& [name, indexed] : index.classes.rows()) {
        if (indexed == module) add(classes, name, module);
      }
    }
  }
  std::vector<Drift> out;
  compare("architectures", index.architectures, architectures, true, out);
  compare("classes", index.classes, classes, false, out);
  compare("spec modes", index.spec_modes, spec_modes, true, out);
  return out;
}

}  // namespace kernelpath::registry
