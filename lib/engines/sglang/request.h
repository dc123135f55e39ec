#pragma once

#include "base/result.h"
#include "engines/request.h"
#include "engines/sglang/launch.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernelpath::engines::sglang {

// The user's arguments, each with the option that gave it.
struct GivenArguments {
  Arguments::Given values = {};
  std::vector<std::pair<std::string, std::string>> set_by = {};  // argument → "--kv-cache-dtype"
  std::vector<std::string> unread = {};                          // options that nothing stands for

  [[nodiscard]] const std::string* option_of(std::string_view name) const;
};

// Merges the common options and --set into the engine's arguments. Errors: kUsageUnknown (no such
// argument or choice), kUsage (a value of another type), kUsageConflict (an option and --set that
// differ).
Result<GivenArguments> read_arguments(const Profile& profile, const Deployment& deployment);

// Nothing for a device of a platform that this program does not follow in this engine.
std::optional<Platform> platform_of(const hardware::Device& device, const Environment& environment);

// Everything that a launch reads. The request's model must have a config.json.
Launch::Input launch_input(const Request& request, const Platform& platform,
                           const GivenArguments& arguments);

}  // namespace kernelpath::engines::sglang
