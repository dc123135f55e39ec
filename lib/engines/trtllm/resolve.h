#pragma once

#include "engines/request.h"
#include "engines/resolution.h"
#include "engines/trtllm/profile.h"

namespace kernelpath::engines::trtllm {

// From a request to everything that the engine decides, in its order: model class, defaults of that
// class, ModelConfig, attention layers, inner kernels, memory. A refusal of the engine ends the
// walk and is the Resolution's error; the steps before it stay.
Resolution resolve(const Request& request, const Profile& profile);

}  // namespace kernelpath::engines::trtllm
