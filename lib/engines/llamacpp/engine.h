#pragma once

#include "base/result.h"
#include "engines/engine.h"

#include <string>

namespace kernelpath::engines::llamacpp {

// llama.cpp at the commit of its tables.
const Engine& engine();

// Takes the tables of a folder instead of the embedded ones, for the life of the process.
// Errors: as load_profile.
Result<void> use_profile_folder(const std::string& folder);

}  // namespace kernelpath::engines::llamacpp
