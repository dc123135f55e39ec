#pragma once

#include "base/result.h"
#include "engines/engine.h"

#include <string>
#include <vector>

namespace kernelpath::engines::vllm {

// vLLM at every version of this build and of use_profile_folder(), oldest first.
std::vector<const Engine*> engines();

// Takes the tables of one release from `folder`: in place of the embedded ones of that version, or
// as a version more. For the life of the process; call it before the first question. Errors:
// kInputMissing, kInputSchema, what reading a file gives.
Result<void> use_profile_folder(const std::string& folder);

}  // namespace kernelpath::engines::vllm
