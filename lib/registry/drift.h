#pragma once

#include "registry/registration.h"
#include "registry/static_index.h"

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kernelpath::registry {

// All built-in modules (short names) with what they register when they are loaded.
using BuiltInModules = std::vector<std::pair<std::string, std::vector<Registration>>>;

enum class DriftKind : std::uint8_t {
  kMissing,  // registered, but the index has no row for it
  kStale,    // the index has a row, but no module registers it
  kWrong,    // the index names a module that does not register it; another one does
};
std::string_view drift_name(DriftKind kind);  // "missing", "stale", "wrong module"

struct Drift {
  DriftKind kind = DriftKind::kMissing;
  std::string table;  // "architectures", "classes", "spec modes"
  std::string key;
  std::string indexed;               // the module of the index; empty if it has no row
  std::vector<std::string> modules;  // the modules that register it
};

// Compares the static index with the registrations in both directions. Of the class index only
// stale and wrong rows are reported: it lists public classes, and not every class is public. A
// class whose name nobody established ("<unestablished>") may be the one of a stale-looking row, so
// such modules count as providing every class that the index places in them.
std::vector<Drift> find_drift(const StaticIndex& index, const BuiltInModules& modules);

// Name of a class that is registered but whose name the extraction could not establish.
inline constexpr std::string_view kUnestablished = "<unestablished>";

}  // namespace kernelpath::registry
