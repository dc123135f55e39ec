#pragma once

#include "engines/engine.h"

namespace kernelpath::engines::deepinfer {

// DeepSeek's own engine at version 0.1.0: one model, no backend to choose, two platforms.
const Engine& engine();

}  // namespace kernelpath::engines::deepinfer
