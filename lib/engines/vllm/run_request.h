#pragma once

#include "engines/request.h"
#include "engines/vllm/arguments.h"
#include "engines/vllm/run.h"
#include "engines/vllm/run_flags.h"

#include <vector>

namespace kernelpath::engines::vllm {

// The user's arguments and variables as the run reads them.
RunFlags flags_of(const Arguments& arguments, const Environment& environment);

// What "register_backend.NAME" and "register_model.ARCHITECTURE" of the arguments register, and
// the classes of external model providers.
std::vector<RegisteredBackend> registered_backends(const Arguments& arguments);
std::vector<RegisteredModel> registered_models(const Arguments& arguments,
                                               const Environment& environment,
                                               const ModelRegistry& registry);

}  // namespace kernelpath::engines::vllm
