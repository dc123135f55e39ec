#pragma once

#include "base/result.h"
#include "config/model_config.h"

#include <string_view>

namespace kernelpath::config {

// The configuration of the model in a GGUF file, in the words of a config.json: the file's metadata
// under their names there, and the layers that follow from them. `config.gguf` must be set.
// Errors: kUnavailable (an architecture whose tensors no class here reads; names those there are),
// those of from_value.
Result<ModelConfig> config_of_gguf(const ModelConfig& config);

// Whether the file's Q and K rows are stored in the order in which rotated pairs are neighbours
// (llama.cpp's converter permutes those of Llama).
bool gguf_pairs_are_neighbours(std::string_view architecture);

}  // namespace kernelpath::config
