#pragma once

#include "engines/request.h"
#include "engines/vllm/arguments.h"
#include "engines/vllm/run.h"
#include "engines/vllm/run_flags.h"
#include "hardware/device.h"

#include <vector>

namespace kernelpath::engines::vllm {

// What `vllm serve` schedules at most in one step, where the user says nothing.
struct BatchDefaults {
  std::int64_t tokens = 0;
  std::int64_t sequences = 0;
};
// Of a device with `ranks` in one group. A device of unknown memory counts as a small one.
// Source: engine/arg_utils.py, get_batch_defaults.
BatchDefaults batch_defaults(const hardware::Device& device, std::int64_t ranks,
                             const Profile& profile);

// The user's arguments and variables as the run reads them.
RunFlags flags_of(const Arguments& arguments, const Environment& environment);

// MODEL of the draft, whichever argument names it.
std::optional<std::string> draft_model_of(const Arguments& arguments);

// What "register_backend.NAME" and "register_model.ARCHITECTURE" of the arguments register, and
// the classes of external model providers.
std::vector<RegisteredBackend> registered_backends(const Arguments& arguments);
std::vector<RegisteredModel> registered_models(const Arguments& arguments,
                                               const Environment& environment,
                                               const ModelRegistry& registry);

}  // namespace kernelpath::engines::vllm
