#pragma once

#include "config/model_config.h"
#include "engines/vllm/profile.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::vllm {

// What the engine reads a draft's configuration as.
struct DraftConfig {
  std::vector<std::string> architectures;
  std::string model_type;
  bool is_mtp = false;                        // layers for multi-token prediction
  std::optional<std::int64_t> predicts = {};  // n_predict: tokens that its modules predict
};

// The rewrites of a checkpoint's configuration where it is loaded as a draft.
// Source: vllm/config/speculative.py, hf_config_override.
DraftConfig read_as_draft(const config::ModelConfig& model, const Profile& profile);

// The architectures of a draft of `method`, prefixed as its classes are registered
// ("LlamaForCausalLM" → "Eagle3LlamaForCausalLM"). Source: transformers_utils/configs/eagle.py.
void prefix_architectures(std::string_view method, std::vector<std::string>& architectures);

// The layers that an MTP class builds out of its checkpoint's configuration: `tokens` are drafted.
// Source: model_executor/models/*_mtp.py.
std::vector<config::Layer> mtp_layers(const config::ModelConfig& model, const DraftConfig& draft,
                                      std::int64_t tokens);

// Settings of a DFlash or DSpark draft. Source: model_executor/models/qwen3_dflash.py.
struct DflashConfig {
  bool non_causal = true;  // some of its layers have no causal mask
  std::optional<std::int64_t> window = {};
  bool window_missing = false;           // layers slide, and nothing says how far
  bool mixed = false;                    // some layers slide, others do not
  std::optional<bool> every_layer = {};  // true: all slide; false: none; nothing: layer_types say
};
DflashConfig dflash_config(const config::ModelConfig& draft, const Profile& profile);

}  // namespace kernelpath::engines::vllm
