#pragma once

#include <string>

namespace kernelpath::model {

// "blk.3.attn_q.weight" → "model.layers.3.self_attn.q_proj.weight"; a name that has no counterpart
// stays as it is. Source: llama.cpp 0c1e5709, gguf-py/gguf/constants.py and tensor_mapping.py.
std::string name_of_gguf_tensor(const std::string& name);

}  // namespace kernelpath::model
