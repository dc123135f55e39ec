#pragma once

#include "base/result.h"
#include "engines/llamacpp/context.h"
#include "engines/llamacpp/cuda_kernels.h"
#include "engines/llamacpp/profile.h"
#include "engines/request.h"
#include "engines/resolution.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::llamacpp {

// An option of the command-line tools, or of the build ("build.…").
struct SettingInfo {
  std::string_view name;
  std::string_view option;  // "-c, --ctx-size"
  std::string_view default_value;
  std::string_view about;
};
std::span<const SettingInfo> setting_table();

// What the user decides, merged with the defaults of the command-line tools (common/common.h).
struct Arguments {
  ContextParams context;
  bool kv_offload = true;  // K and V on the devices of their layers
  bool on_devices = true;  // layers on GPUs: n_gpu_layers is not 0
  CudaBuild build;
  std::string flash_set_by;                 // "user" or "engine default"
  std::vector<Resolution::Option> options;  // final values, in the table's order

  // Errors: kUsageUnknown (no such setting, type or mode; near matches), kUsage (a value of another
  // kind), kUsageConflict (an option and --set that differ).
  static Result<Arguments> read(const Profile& profile, const Deployment& deployment);
};

}  // namespace kernelpath::engines::llamacpp
