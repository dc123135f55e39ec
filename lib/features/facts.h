#pragma once

#include "config/model_config.h"
#include "engines/request.h"
#include "engines/resolution.h"
#include "features/schema.h"
#include "hardware/device.h"
#include "json/value.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernelpath::features {

// What rules may know about a model, in the words of data/rules/facts.json. Unset means unknown: a
// condition on it does not hold.
struct ModelFacts {
  std::optional<std::string> architecture = {};
  std::optional<std::string> model_type = {};
  std::optional<std::string> text_model_type = {};
  std::optional<std::string> dtype = {};
  std::optional<std::string> quant_method = {};
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
  std::optional<std::int64_t> index_topk = {};
  std::optional<bool> has_sliding_layers = {};
  std::optional<bool> has_vision = {};
  std::optional<bool> has_attention_sinks = {};
  std::optional<double> attn_logit_softcapping = {};
  std::optional<bool> has_state_layers = {};
  std::optional<bool> has_shared_layers = {};  // layers that read the cache of an earlier one
  std::optional<bool> has_chunked_layers = {};
  std::optional<std::int64_t> max_position_embeddings = {};
  std::optional<bool> is_encoder_decoder = {};
  std::optional<std::string> kv_cache_quantization = {};
  std::optional<bool> has_kv_scales = {};
  std::optional<std::string> rope_type = {};
  // The checkpoint brings its own draft layers in the names mtp.*.
  std::optional<bool> has_mtp_weights = {};
};

struct DeviceFacts {
  std::optional<std::string> id = {};
  std::optional<bool> stated = {};           // the user named it
  std::optional<std::string> platform = {};  // cuda, rocm, cpu, ascend
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
  std::optional<std::string> cuda_graphs = {};
  std::optional<bool> honours_chunk = {};
  std::optional<std::string> kernel_lse_base = {};
  std::optional<std::string> merge_lse_base = {};
  std::vector<std::string> unread_options = {};
  std::optional<std::int64_t> weight_bytes = {};
  std::optional<std::int64_t> kv_bytes_per_token = {};
  std::optional<std::int64_t> state_bytes_per_sequence = {};
  std::optional<std::int64_t> sequences = {};
};

// About the draft checkpoint.
struct DraftFacts {
  std::optional<std::string> architecture = {};
  std::optional<std::int64_t> block_size = {};
  std::vector<std::int64_t> target_layer_ids = {};  // empty: it names none
};

struct Facts {
  ModelFacts model = {};
  DraftFacts draft = {};
  DeviceFacts device = {};
  ResolvedFacts resolved = {};
  std::optional<bool> engine_named = {};  // by the user; else the question goes to all
  // In the engine's own terms, as its resolution states them; they win over all others.
  std::vector<engines::Resolution::Fact> own = {};
  std::vector<std::string> lacks = {};  // packages that are not installed
  // Environment variables of the engine's process; the table's fields say which it reads.
  std::vector<std::pair<std::string, std::string>> variables = {};
};

ModelFacts facts_of(const config::ModelConfig& model);
DraftFacts draft_facts_of(const config::ModelConfig& draft);
DeviceFacts facts_of(const hardware::Device& device);
// The facts that a resolution settles. What it does not say stays unknown.
ResolvedFacts facts_of(const engines::Resolution& resolution);

// The tree that Context::state() reads; without the variables.
json::Value to_tree(const Facts& facts);

// What an environment variable states of the field that names it.
json::Value variable_value(const FieldInfo& field, std::string_view text);

}  // namespace kernelpath::features
