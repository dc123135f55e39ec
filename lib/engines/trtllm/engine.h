#pragma once

#include "base/result.h"
#include "engines/engine.h"

namespace kernelpath::engines::trtllm {

// TensorRT-LLM's PyTorch backend at version 2026-11 (several files' commits: --sources).
const Engine& engine();

// Replaces the tables by those of a --profile-dir folder, for the life of the process; call it
// before the first question. Errors: kInputMissing, kInputSchema, what reading a file gives.
Result<void> use_profile_folder(const std::string& folder);

}  // namespace kernelpath::engines::trtllm
