#pragma once

#include "base/result.h"
#include "checkpoint/tensor_files.h"
#include "config/model_config.h"

#include <string>
#include <string_view>

namespace kernelpath::model {

// The configuration of the model in a GGUF file, in the words of a config.json: the file's metadata
// under their names there. `config.gguf` must be set.
// Errors: kUnavailable (an architecture whose tensors no class here reads; names those there are),
// those of config::from_value.
Result<config::ModelConfig> config_of_gguf(const config::ModelConfig& config);

// Whether the file's Q and K rows are stored in the order in which rotated pairs are neighbours
// (llama.cpp's converter permutes those of Llama).
bool gguf_pairs_are_neighbours(std::string_view architecture);

// "blk.3.attn_q.weight" → "model.layers.3.self_attn.q_proj.weight"; a name that has no counterpart
// stays as it is. Source: llama.cpp 0c1e5709, gguf-py/gguf/constants.py and tensor_mapping.py.
std::string name_of_gguf_tensor(const std::string& name);

}  // namespace kernelpath::model
