#pragma once

#include "engines/llamacpp/profile.h"
#include "engines/request.h"
#include "engines/resolution.h"

namespace kernelpath::engines::llamacpp {

// The whole way from a config.json or a GGUF file to the kernel of each layer and the memory.
Resolution resolve(const Request& request, const Profile& profile);

}  // namespace kernelpath::engines::llamacpp
