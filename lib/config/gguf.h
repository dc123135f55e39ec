#pragma once

#include "base/result.h"
#include "config/load.h"
#include "config/model_config.h"

#include <string>

namespace kernelpath::config {

// Does the file claim to be GGUF? Reads its first bytes; false where it cannot be read.
bool is_gguf_file(const std::string& path);

// A GGUF file as MODEL: `gguf` holds what it says, and the sizes that its metadata states are
// copied for reports. Layers stay empty: only an engine that loads such files knows them.
// Errors: those of checkpoint::read_gguf; kCheckpoint for an architecture that is missing, empty or
// no string, and for more layers than any model has.
Result<ModelConfig> load_gguf(const std::string& path, const LoadOptions& options);

}  // namespace kernelpath::config
