#include "features/facts.h"

#include "base/text.h"
#include "base/units.h"
#include "features/argument_tree.h"

#include <algorithm>

namespace kernelpath::features {
namespace {

// Members of one group; unset facts leave no member.
class Group {
 public:
  Group& put(std::string_view key, const std::optional<std::string>& value) {
    if (value) members_.push_back({.key = std::string(key), .value = json::Value::string(*value)});
    return *this;
  }
  Group& put(std::string_view key, const std::optional<std::int64_t>& value) {
    if (value) members_.push_back({.key = std::string(key), .value = json::Value::integer(*value)});
    return *this;
  }
  Group& put(std::string_view key, const std::optional<double>& value) {
    if (value) members_.push_back({.key = std::string(key), .value = json::Value::number(*value)});
    return *this;
  }
  Group& put(std::string_view key, const std::optional<bool>& value) {
    if (value) members_.push_back({.key = std::string(key), .value = json::Value::boolean(*value)});
    return *this;
  }
  Group& put(std::string_view key, const std::vector<std::int64_t>& values) {
    if (values.empty()) return *this;
    std::vector<json::Value> items;
    items.reserve(values.size());
    for (const std::int64_t value : values) items.push_back(json::Value::integer(value));
    members_.push_back({.key = std::string(key), .value = json::Value::array(std::move(items))});
    return *this;
  }
  Group& put(std::string_view key, const std::vector<std::string>& values) {
    if (values.empty()) return *this;
    std::vector<json::Value> items;
    items.reserve(values.size());
    for (const std::string& value : values) items.push_back(json::Value::string(value));
    members_.push_back({.key = std::string(key), .value = json::Value::array(std::move(items))});
    return *this;
  }
  json::Value done() { return json::Value::object(std::move(members_)); }

 private:
  std::vector<json::Member> members_;
};

template <class T>
std::optional<T> value_of(const config::Field<T>& field) {
  return field.value;
}

bool has_window(const config::Layer& layer) { return layer.kind == config::LayerKind::kSliding; }

bool is_chunked(const config::Layer& layer) { return layer.kind == config::LayerKind::kChunked; }

bool keeps_state(const config::Layer& layer) {
  return layer.kind == config::LayerKind::kLinear || layer.kind == config::LayerKind::kMamba;
}

json::Value model_tree(const ModelFacts& model) {
  return Group()
      .put("architecture", model.architecture)
      .put("model_type", model.model_type)
      .put("text_model_type", model.text_model_type)
      .put("dtype", model.dtype)
      .put("quant_method", model.quant_method)
      .put("model_class", model.model_class)
      .put("is_mla", model.is_mla)
      .put("q_lora_rank", model.q_lora_rank)
      .put("kv_lora_rank", model.kv_lora_rank)
      .put("qk_nope_head_dim", model.qk_nope_head_dim)
      .put("qk_rope_head_dim", model.qk_rope_head_dim)
      .put("v_head_dim", model.v_head_dim)
      .put("head_dim", model.head_dim)
      .put("num_attention_heads", model.num_attention_heads)
      .put("num_key_value_heads", model.num_key_value_heads)
      .put("num_hidden_layers", model.num_hidden_layers)
      .put("num_experts", model.num_experts)
      .put("attention_chunk_size", model.attention_chunk_size)
      .put("sliding_window", model.sliding_window)
      .put("index_topk", model.index_topk)
      .put("has_sliding_layers", model.has_sliding_layers)
      .put("has_vision", model.has_vision)
      .put("has_attention_sinks", model.has_attention_sinks)
      .put("attn_logit_softcapping", model.attn_logit_softcapping)
      .put("has_state_layers", model.has_state_layers)
      .put("has_shared_layers", model.has_shared_layers)
      .put("has_chunked_layers", model.has_chunked_layers)
      .put("max_position_embeddings", model.max_position_embeddings)
      .put("is_encoder_decoder", model.is_encoder_decoder)
      .put("kv_cache_quantization", model.kv_cache_quantization)
      .put("has_kv_scales", model.has_kv_scales)
      .put("rope_type", model.rope_type)
      .put("has_mtp_weights", model.has_mtp_weights)
      .done();
}

json::Value resolved_tree(const ResolvedFacts& resolved) {
  return Group()
      .put("backend", resolved.backend)
      .put("context_length", resolved.context_length)
      .put("kv_dtype", resolved.kv_dtype)
      .put("page_size", resolved.page_size)
      .put("raised_page_size", resolved.raised_page_size)
      .put("cuda_graphs", resolved.cuda_graphs)
      .put("honours_chunk", resolved.honours_chunk)
      .put("kernel_lse_base", resolved.kernel_lse_base)
      .put("merge_lse_base", resolved.merge_lse_base)
      .put("unread_options", resolved.unread_options)
      .done();
}

json::Value memory_tree(const ResolvedFacts& resolved) {
  return Group()
      .put("weight_bytes", resolved.weight_bytes)
      .put("kv_bytes_per_token", resolved.kv_bytes_per_token)
      .put("state_bytes_per_sequence", resolved.state_bytes_per_sequence)
      .put("sequences", resolved.sequences)
      .done();
}

}  // namespace

ModelFacts facts_of(const config::ModelConfig& model) {
  ModelFacts out;
  if (!model.architectures.empty()) out.architecture = model.architectures.front();
  out.model_type = value_of(model.model_type);
  if (!model.text_model_type.empty()) out.text_model_type = model.text_model_type;
  out.dtype = value_of(model.dtype);
  out.quant_method = value_of(model.quantization.method);
  out.is_mla = model.mla.has_value() || model.has_kv_lora_rank;
  if (model.mla) {
    out.q_lora_rank = value_of(model.mla->q_lora_rank);
    out.kv_lora_rank = value_of(model.mla->kv_lora_rank);
    out.qk_nope_head_dim = value_of(model.mla->qk_nope_head_dim);
    out.qk_rope_head_dim = value_of(model.mla->qk_rope_head_dim);
    out.v_head_dim = value_of(model.mla->v_head_dim);
  }
  out.head_dim = value_of(model.head_dim);
  out.num_attention_heads = value_of(model.num_attention_heads);
  out.num_key_value_heads = value_of(model.num_key_value_heads);
  out.num_hidden_layers = value_of(model.num_hidden_layers);
  if (model.moe) out.num_experts = value_of(model.moe->num_experts);
  out.attention_chunk_size = value_of(model.attention_chunk_size);
  out.sliding_window = value_of(model.sliding_window);
  if (model.sparse) out.index_topk = value_of(model.sparse->index_topk);
  out.has_sliding_layers = std::any_of(model.layers.begin(), model.layers.end(), has_window);
  out.has_vision = model.has_vision;
  out.has_attention_sinks = value_of(model.attention_sinks);
  out.attn_logit_softcapping = value_of(model.attn_logit_softcapping);
  out.has_state_layers = std::any_of(model.layers.begin(), model.layers.end(), keeps_state);
  out.has_shared_layers = std::any_of(model.layers.begin(), model.layers.end(),
                                      [](const config::Layer& layer) { return layer.shares_kv; });
  out.has_chunked_layers = std::any_of(model.layers.begin(), model.layers.end(), is_chunked);
  out.max_position_embeddings = value_of(model.max_position_embeddings);
  out.is_encoder_decoder = value_of(model.is_encoder_decoder);
  out.kv_cache_quantization = value_of(model.quantization.kv_cache_dtype);
  // A checkpoint calibrated for a quantised cache says so; one that does not has no scales for it.
  out.has_kv_scales = model.quantization.kv_cache_dtype.value.has_value();
  out.rope_type = value_of(model.rope.type);
  // The names of the tensors would say it; TensorRT-LLM goes by the type where there is no index.
  out.has_mtp_weights = value_of(model.model_type) == "deepseek_v4";
  return out;
}

DraftFacts draft_facts_of(const config::ModelConfig& draft) {
  DraftFacts out{.block_size = value_of(draft.draft.block_size),
                 .target_layer_ids = draft.draft.target_layer_ids};
  if (!draft.architectures.empty()) out.architecture = draft.architectures.front();
  return out;
}

DeviceFacts facts_of(const hardware::Device& device) {
  DeviceFacts out{.id = device.id,
                  .platform = std::string(hardware::platform_name(device.platform))};
  if (device.capability) out.sm = device.capability->sm();
  out.memory_bytes = device.usable_bytes();
  return out;
}

ResolvedFacts facts_of(const engines::Resolution& resolution) {
  ResolvedFacts out;
  if (!resolution.selected_backend.empty()) out.backend = resolution.selected_backend;
  for (const engines::LayerGroup& group : resolution.layers) {
    if (!out.kv_dtype && !group.kv.dtype.empty()) out.kv_dtype = group.kv.dtype;
    if (!out.page_size) out.page_size = group.kv.page_size;
  }
  for (const engines::Resolution::Option& option : resolution.options) {
    if (option.name == "compilation_config.cudagraph_mode") out.cuda_graphs = option.value;
    const auto tokens = parse_integer(option.value);
    if (option.name == "block_size" && tokens) out.raised_page_size = *tokens;
  }
  out.weight_bytes = resolution.memory.weight_bytes;
  out.kv_bytes_per_token = resolution.memory.kv_bytes_per_token;
  out.state_bytes_per_sequence = resolution.memory.state_bytes_per_sequence;
  return out;
}

json::Value variable_value(const FieldInfo& field, std::string_view text) {
  if (field.type == FieldType::kBool) return json::Value::boolean(text == field.on);
  if (field.separator.empty()) return json::Value::string(std::string(text));
  std::vector<json::Value> items;
  for (std::string item : split(text, field.separator.front())) {
    std::erase_if(item, [](char c) { return c == ' ' || c == '\t'; });
    if (!item.empty()) items.push_back(json::Value::string(std::move(item)));
  }
  return json::Value::array(std::move(items));
}

json::Value to_tree(const Facts& facts) {
  std::vector<json::Member> members = {
      {.key = "model", .value = model_tree(facts.model)},
      {.key = "asked", .value = Group().put("engine", facts.engine_named).done()},
      {.key = "device",
       .value = Group()
                    .put("id", facts.device.id)
                    .put("stated", facts.device.stated)
                    .put("platform", facts.device.platform)
                    .put("sm", facts.device.sm)
                    .put("memory_bytes", facts.device.memory_bytes)
                    .done()},
      {.key = "draft",
       .value = Group()
                    .put("architecture", facts.draft.architecture)
                    .put("block_size", facts.draft.block_size)
                    .put("target_layer_ids", facts.draft.target_layer_ids)
                    .put("backend", facts.resolved.draft_backend)
                    .done()},
      {.key = "resolved", .value = resolved_tree(facts.resolved)},
      {.key = "memory", .value = memory_tree(facts.resolved)}};
  Group available;
  for (std::string package : facts.lacks) {
    std::replace(package.begin(), package.end(), '-', '_');
    available.put(to_lower(package), std::optional<bool>(false));
  }
  members.push_back({.key = "available", .value = available.done()});
  json::Value out = json::Value::object(std::move(members));
  for (const engines::Resolution::Fact& fact : facts.own) {
    out = with_argument(out, fact.name, fact.value);
  }
  return out;
}

}  // namespace kernelpath::features
