#pragma once

#include "base/result.h"
#include "engines/engine.h"

#include <string>

namespace kernelpath::engines::sglang {

// SGLang at the version of the tables in use.
const Engine& engine();

}  // namespace kernelpath::engines::sglang
