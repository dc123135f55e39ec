#pragma once

#include "base/result.h"
#include "engines/llamacpp/context.h"
#include "engines/llamacpp/cuda_kernels.h"
#include "engines/llamacpp/profile.h"
#include "engines/request.h"
#include "engines/resolution.h"

#include <cstdint>
#include <optional>
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
  std::string_view variable = {};  // of the environment that states it; empty: none
};
std::span<const SettingInfo> setting_table();

// How a model is spread over GPUs.
enum class SplitMode : std::uint8_t { kNone, kLayer, kRow, kTensor };

// Where layers go. Source: common/common.h, struct common_params.
struct SplitParams {
  SplitMode mode = SplitMode::kLayer;
  std::int64_t devices = 1;                       // GPUs that the engine sees
  std::vector<double> shares = {};                // of each GPU; all 0 or none: by free memory
  std::optional<std::int64_t> n_gpu_layers = {};  // the output layer counts; unset: all
  std::int64_t main_gpu = 0;                      // of SplitMode::kNone; negative: none
  std::int64_t host_experts = 0;  // layers, from the first, whose experts stay on the CPU
  std::int64_t host_mlps = 0;     // the same of dense MLPs
  [[nodiscard]] bool overrides() const { return host_experts > 0 || host_mlps > 0; }
};

// What the user decides, merged with the defaults of the command-line tools (common/common.h).
struct Arguments {
  ContextParams context;
  SplitParams split;
  bool kv_offload = true;  // K and V on the devices of their layers
  bool on_devices = true;  // layers on GPUs: n_gpu_layers is not 0
  // --fit: the context and the layers on GPUs, where the user leaves them open, shrink until the
  // model fits.
  bool fits_context = true;
  bool fits_layers = true;
  CudaBuild build;
  std::string flash_set_by;                 // "user" or "engine default"
  std::vector<Resolution::Option> options;  // final values, in the table's order

  // Variables of the environment stand below the options, as in the engine.
  // Errors: kUsageUnknown (no such setting, type or mode; near matches), kUsage (a value of another
  // kind), kUsageConflict (an option and --set that differ, two ways of splitting).
  static Result<Arguments> read(const Profile& profile, const Deployment& deployment,
                                const Environment& environment = {});
};

// Whether --backend names what this engine has: auto, on or off.
bool is_flash_word(std::string_view backend);

}  // namespace kernelpath::engines::llamacpp
