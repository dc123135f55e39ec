#pragma once

#include "engines/engine.h"

namespace kernelpath::engines::llamacpp {

// llama.cpp at the commit of its tables.
const Engine& engine();

}  // namespace kernelpath::engines::llamacpp
