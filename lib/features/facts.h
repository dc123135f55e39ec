#pragma once

#include "config/model_config.h"
#include "engines/request.h"
#include "engines/resolution.h"
#include "hardware/device.h"
#include "json/value.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kernelpath::features {

// What rules may know about a model, in the words of data/rules/facts.json. Unset means unknown: a
// condition on it does not hold.
struct ModelFacts {
  std::optional<std::string> architecture = {};
  std::optional<std::string> model_class = {};  // empty string: the engine finds none
  std::optional<bool> is_mla = {};
  std::optional<std::int64_t> q_lora_rank = {};
  std::optional<std::int64_t> kv_lora_rank = {};
  std::optional<std::int64_t> qk_nope_head_dim = {};
  std::optional<std::int64_t> qk_rope_head_dim = {};
  std::optional<std::int64_t> v_head_dim = {};
  std::optional<std::int64_t> head_dim = {};
  std::optional<std::int64_t> num_attention_heads = {};
  std::optional<std::int64_t> num_key_value_heads = {};
  std::optional<std::int64_t> num_hidden_layers = {};
  std::optional<std::int64_t> num_experts = {};
  std::optional<std::int64_t> attention_chunk_size = {};
  std::optional<std::int64_t> sliding_window = {};
  std::optional<bool> has_state_layers = {};
  std::optional<std::int64_t> max_position_embeddings = {};
  std::optional<bool> is_encoder_decoder = {};
  std::optional<std::string> kv_cache_quantization = {};
  std::optional<bool> has_kv_scales = {};
  std::optional<std::string> rope_type = {};
};

struct DeviceFacts {
  std::optional<std::string> id = {};
  std::optional<std::int64_t> sm = {};
  std::optional<std::int64_t> memory_bytes = {};
};

// What an engine's resolution adds.
struct ResolvedFacts {
  std::optional<std::string> backend = {};
  std::optional<std::string> draft_backend = {};
  std::optional<std::int64_t> context_length = {};
  std::optional<std::string> kv_dtype = {};
  std::optional<std::int64_t> page_size = {};
  std::optional<std::int64_t> raised_page_size = {};
  std::optional<bool> honours_chunk = {};
  std::optional<std::string> kernel_lse_base = {};
  std::optional<std::string> merge_lse_base = {};
  std::vector<std::string> unread_options = {};
  std::optional<std::int64_t> weight_bytes = {};
  std::optional<std::int64_t> kv_bytes_per_token = {};
  std::optional<std::int64_t> state_bytes_per_sequence = {};
  std::optional<std::int64_t> sequences = {};
};

struct Facts {
  ModelFacts model = {};
  std::optional<std::string> draft_architecture = {};
  DeviceFacts device = {};
  ResolvedFacts resolved = {};
  std::vector<std::string> lacks = {};  // packages that are not installed
};

ModelFacts facts_of(const config::ModelConfig& model);
DeviceFacts facts_of(const hardware::Device& device);
// The facts that a resolution settles. What it does not say stays unknown.
ResolvedFacts facts_of(const engines::Resolution& resolution);

// The tree that Context::state() reads.
json::Value to_tree(const Facts& facts);

}  // namespace kernelpath::features
