#pragma once

#include "config/model_config.h"

#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::config {

// One derived value as `llm-inspect --show` prints it.
struct ShownValue {
  std::string group;  // one of show_groups()
  std::string name;   // "num_key_value_heads"
  std::string value;  // "8"; "-" where nobody states it and no default applies
  std::string
      origin;  // "/num_key_value_heads", "hf_quant_config.json:/…", "default (family default: …)"
};

// The groups in the order of the report: "class", "attention", "kv", "rope", "quant", "moe",
// "state", "draft", "weights".
const std::vector<std::string_view>& show_groups();

// The values of one group in a fixed order, or of all groups for "all". A group that the model has
// nothing to say about is empty; an unknown group name gives nothing.
std::vector<ShownValue> show_values(const ModelConfig& config, std::string_view group);

// "/num_key_value_heads", "default (family default: mixtral)", "derived (hidden_size //
// num_attention_heads)", "hf_quant_config.json:/quantization/quant_algo", "absent".
std::string origin_text(const Origin& origin);

}  // namespace kernelpath::config
