#pragma once

#include "engines/engine.h"

namespace kernelpath::engines::kernelpath {

// This project's own runtime (llm-run), by the registry and the capability table that it executes.
const Engine& engine();

}  // namespace kernelpath::engines::kernelpath
