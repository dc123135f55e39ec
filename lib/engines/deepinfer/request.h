#pragma once

#include "base/result.h"
#include "engines/deepinfer/start_up.h"
#include "engines/request.h"

#include <optional>
#include <string>
#include <vector>

namespace kernelpath::engines::deepinfer {

// An option that no argument of the engine stands for: its class would refuse the argument's name.
struct UnknownOption {
  std::string option;    // "--kv-cache-dtype"
  std::string argument;  // "kv_cache_dtype"
};

struct Argument {
  std::string name;
  std::string value;
  std::string set_by;
};

// A deployment in the engine's words.
struct Launch {
  Arguments arguments = {};
  std::vector<Argument> stated;  // what the user set, in the order of the table
  TextPairs variables;
  std::vector<UnknownOption> unknown;
};

// Merges the common options, --set and --env. Errors: kUsageUnknown (no such argument), kUsage (a
// value of another type), kUsageConflict (an option and --set that differ).
Result<Launch> read_launch(const Deployment& deployment, const Environment& environment);

// The platform that the engine takes for a device; nothing where it has none for it.
std::optional<Machine> machine_of(const hardware::Device& device);

}  // namespace kernelpath::engines::deepinfer
