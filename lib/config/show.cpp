#include "config/show.h"

#include "base/text.h"
#include "base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace kernelpath::config {
namespace {

constexpr std::size_t kLongList = 8;

std::string number_text(double value) {
  if (value == std::trunc(value) && std::abs(value) < 1e15) {
    return fmt::format("{}", static_cast<std::int64_t>(value));
  }
  return fmt::format("{}", value);
}

std::string list_text(const std::vector<std::int64_t>& list) {
  std::string text;
  for (std::size_t index = 0; index < list.size(); ++index) {
    if (index == kLongList) return fmt::format("{}, … ({} entries)", text, list.size());
    text += fmt::format("{}{}", index == 0 ? "" : ", ", list[index]);
  }
  return text;
}

// Collects the rows of one group.
class Rows {
 public:
  Rows(std::string_view group, std::vector<ShownValue>& out) : group_(group), out_(out) {}

  void add(std::string_view name, std::string value, const Origin& origin) {
    out_.push_back({group_, std::string(name), std::move(value), origin_text(origin)});
  }
  void add(std::string_view name, const IntField& field) {
    add(name, field ? std::to_string(*field) : "-", field.origin);
  }
  void add(std::string_view name, const DoubleField& field) {
    add(name, field ? number_text(*field) : "-", field.origin);
  }
  void add(std::string_view name, const BoolField& field) {
    add(name, field ? (*field ? "true" : "false") : "-", field.origin);
  }
  void add(std::string_view name, const StringField& field) {
    const std::string text = field && field.value->empty() ? R"("")" : field.value_or("-");
    add(name, escape_for_terminal(text), field.origin);
  }
  // Only where somebody states it or a rule gives it.
  template <class T>
  void add_if(std::string_view name, const Field<T>& field) {
    if (field) add(name, field);
  }

 private:
  std::string group_;
  std::vector<ShownValue>& out_;
};

Origin field_origin(std::string where) { return {OriginKind::kField, std::move(where), {}}; }

void show_class(const ModelConfig& c, Rows& rows) {
  std::string names;
  for (const std::string& name : c.architectures) {
    names += (names.empty() ? "" : ", ") + escape_for_terminal(name);
  }
  rows.add("architectures", names.empty() ? "-" : names,
           c.has_architectures ? field_origin("/architectures") : Origin{});
  rows.add_if("architecture by model_type", c.inferred_architecture);
  rows.add("model_type", c.model_type);
  if (!c.text_pointer.empty()) {
    rows.add("language model", c.text_pointer, field_origin(c.text_pointer));
  }
  rows.add("is_encoder_decoder", c.is_encoder_decoder);
  rows.add("dtype", c.dtype);
  rows.add("vision", c.has_vision ? "yes" : "no",
           Origin{OriginKind::kDerived, "", "fields of a tower"});
  rows.add("audio", c.has_audio ? "yes" : "no",
           Origin{OriginKind::kDerived, "", "fields of a tower"});
  rows.add("needs remote code", c.needs_remote_code ? "yes" : "no",
           c.needs_remote_code ? field_origin("/auto_map") : Origin{});
}

// "26 sliding, 4 full": the layers by kind, in the order in which they first appear.
std::string kinds_text(const ModelConfig& c) {
  std::vector<LayerKind> kinds;
  for (const Layer& layer : c.layers) {
    if (std::find(kinds.begin(), kinds.end(), layer.kind) == kinds.end()) {
      kinds.push_back(layer.kind);
    }
  }
  std::string text;
  for (const LayerKind kind : kinds) {
    const auto count = std::count_if(c.layers.begin(), c.layers.end(),
                                     [&](const Layer& layer) { return layer.kind == kind; });
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, layer_kind_name(kind));
  }
  return text;
}

void show_attention(const ModelConfig& c, Rows& rows) {
  rows.add("attention", attention_summary(c), Origin{OriginKind::kDerived, "", "heads and ranks"});
  rows.add("num_hidden_layers", c.num_hidden_layers);
  if (!c.layers.empty()) rows.add("layers", kinds_text(c), c.layers_origin);
  rows.add("hidden_size", c.hidden_size);
  rows.add("intermediate_size", c.intermediate_size);
  rows.add("num_attention_heads", c.num_attention_heads);
  rows.add("num_key_value_heads", c.num_key_value_heads);
  if (!c.num_key_value_heads_list.empty()) {
    rows.add("num_key_value_heads by layer", list_text(c.num_key_value_heads_list),
             c.num_key_value_heads.origin);
  }
  rows.add("head_dim", c.head_dim);
  rows.add("vocab_size", c.vocab_size);
  rows.add("tie_word_embeddings", c.tie_word_embeddings);
  rows.add_if("attention sinks", c.attention_sinks);
  rows.add_if("attn_logit_softcapping", c.attn_logit_softcapping);
  if (c.mla) {
    rows.add("q_lora_rank", c.mla->q_lora_rank);
    rows.add("kv_lora_rank", c.mla->kv_lora_rank);
    rows.add("qk_nope_head_dim", c.mla->qk_nope_head_dim);
    rows.add("qk_rope_head_dim", c.mla->qk_rope_head_dim);
    rows.add("v_head_dim", c.mla->v_head_dim);
  }
  if (c.sparse) {
    rows.add("index_n_heads", c.sparse->index_n_heads);
    rows.add("index_head_dim", c.sparse->index_head_dim);
    rows.add("index_topk", c.sparse->index_topk);
    if (!c.sparse->compress_ratios.empty()) {
      rows.add("compress_ratios", list_text(c.sparse->compress_ratios),
               c.sparse->compress_ratios_origin);
    }
  }
}

void show_kv(const ModelConfig& c, Rows& rows) {
  rows.add("max_position_embeddings", c.max_position_embeddings);
  rows.add("sliding_window", c.sliding_window);
  rows.add("attention_chunk_size", c.attention_chunk_size);
  rows.add("kv_cache_dtype", c.quantization.kv_cache_dtype);
  const auto shared = std::count_if(c.layers.begin(), c.layers.end(),
                                    [](const Layer& layer) { return layer.shares_kv; });
  if (shared > 0) {
    rows.add("layers that share a cache", std::to_string(shared),
             Origin{OriginKind::kDerived, "", "num_kv_shared_layers"});
  }
}

void show_rope(const ModelConfig& c, Rows& rows) {
  rows.add("rope_type", c.rope.type);
  rows.add("rope_theta", c.rope.theta);
  if (c.rope.local_theta) rows.add("rope_theta of sliding layers", *c.rope.local_theta);
  rows.add_if("factor", c.rope.factor);
  rows.add_if("original_max_position_embeddings", c.rope.original_max_position_embeddings);
  rows.add_if("partial_rotary_factor", c.rope.partial_rotary_factor);
  if (!c.rope.mrope_section.empty()) {
    rows.add("mrope_section", list_text(c.rope.mrope_section), c.rope.type.origin);
  }
  const auto unrotated = std::count_if(c.layers.begin(), c.layers.end(), [](const Layer& layer) {
    return !layer.rope && layer.num_attention_heads > 0 && layer.kind != LayerKind::kNone &&
           layer.kind != LayerKind::kMamba;
  });
  if (unrotated > 0 && c.rope.type.value_or("") != "none") {
    rows.add("layers without RoPE", std::to_string(unrotated),
             Origin{OriginKind::kDerived, "", "no_rope_layers or the family's rule"});
  }
}

void show_quantization(const Quantization& quant, std::string_view prefix, Rows& rows) {
  const auto named = [&](std::string_view name) { return fmt::format("{}{}", prefix, name); };
  rows.add(named("quant_method"), quant.method);
  rows.add(named("quant_algo"), quant.algo);
  rows.add_if(named("weight bits"), quant.weight_bits);
  rows.add_if(named("group_size"), quant.group_size);
  if (!quant.weight_block_size.empty()) {
    rows.add(named("weight_block_size"), list_text(quant.weight_block_size), quant.method.origin);
  }
  rows.add_if(named("activation_scheme"), quant.activation_scheme);
  rows.add_if(named("expert_dtype"), quant.expert_dtype);
  rows.add_if(named("kv_cache_dtype"), quant.kv_cache_dtype);
  if (!quant.exclude_modules.empty()) {
    rows.add(named("modules left as they are"), std::to_string(quant.exclude_modules.size()),
             quant.method.origin);
  }
  if (!quant.layer_algos.empty()) {
    rows.add(named("modules with their own algorithm"), std::to_string(quant.layer_algos.size()),
             quant.algo.origin);
  }
}

void show_quant(const ModelConfig& c, Rows& rows) {
  if (!c.quantization.any() && !c.quantization.expert_dtype) return;
  show_quantization(c.quantization, "", rows);
  if (c.sibling_quantization) show_quantization(*c.sibling_quantization, "beside: ", rows);
}

void show_moe(const ModelConfig& c, Rows& rows) {
  if (!c.moe) return;
  rows.add("num_experts", c.moe->num_experts);
  rows.add("num_experts_per_tok", c.moe->num_experts_per_tok);
  rows.add("moe_intermediate_size", c.moe->moe_intermediate_size);
  rows.add_if("num_shared_experts", c.moe->num_shared_experts);
  rows.add_if("shared_intermediate_size", c.moe->shared_intermediate_size);
  rows.add_if("first_k_dense_replace", c.moe->first_k_dense_replace);
  const auto sparse =
      std::count_if(c.layers.begin(), c.layers.end(), [](const Layer& layer) { return layer.moe; });
  rows.add("layers with experts", std::to_string(sparse),
           Origin{OriginKind::kDerived, "", "fields of the family"});
}

void show_state(const ModelConfig& c, Rows& rows) {
  if (!c.linear_state) return;
  rows.add_if("conv_kernel", c.linear_state->conv_kernel);
  rows.add_if("state_size", c.linear_state->state_size);
  rows.add_if("num_heads", c.linear_state->num_heads);
  rows.add_if("head_dim", c.linear_state->head_dim);
  rows.add_if("num_groups", c.linear_state->num_groups);
  rows.add_if("inner width", c.linear_state->intermediate_size);
}

void show_draft(const ModelConfig& c, Rows& rows) {
  if (c.draft.has_draft_vocab_size) rows.add("draft_vocab_size", c.draft.draft_vocab_size);
  rows.add_if("num_nextn_predict_layers", c.draft.num_nextn_predict_layers);
  rows.add_if("block_size", c.draft.block_size);
  if (c.draft.has_eagle_config) rows.add("eagle_config", "yes", field_origin("/eagle_config"));
  if (c.draft.has_dflash_config) rows.add("dflash_config", "yes", field_origin("/dflash_config"));
  if (!c.draft.target_layer_ids.empty()) {
    rows.add("target layers", list_text(c.draft.target_layer_ids),
             field_origin(c.draft.has_dflash_config ? "/dflash_config" : "/eagle_config"));
  }
}

void show_weights(const ModelConfig& c, Rows& rows) {
  if (!c.weights) return;
  rows.add("total bytes",
           c.weights->total_bytes ? format_bytes(*c.weights->total_bytes) : std::string("-"),
           c.weights->total_bytes.origin);
  rows.add("tensors", c.weights->tensor_count);
  if (!c.weights->missing_shards.empty()) {
    rows.add("missing shards", std::to_string(c.weights->missing_shards.size()),
             c.weights->total_bytes.origin);
  }
}

using Show = void (*)(const ModelConfig&, Rows&);
constexpr std::array<std::pair<std::string_view, Show>, 9> kGroups = {
    {{"class", show_class},
     {"attention", show_attention},
     {"kv", show_kv},
     {"rope", show_rope},
     {"quant", show_quant},
     {"moe", show_moe},
     {"state", show_state},
     {"draft", show_draft},
     {"weights", show_weights}}};

}  // namespace

const std::vector<std::string_view>& show_groups() {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> names;
    names.reserve(kGroups.size());
    for (const auto& [name, show] : kGroups) names.push_back(name);
    return names;
  }();
  return kNames;
}

std::vector<ShownValue> show_values(const ModelConfig& config, std::string_view group) {
  std::vector<ShownValue> values;
  for (const auto& [name, show] : kGroups) {
    if (group != "all" && group != name) continue;
    Rows rows(name, values);
    show(config, rows);
  }
  return values;
}

std::string origin_text(const Origin& origin) {
  switch (origin.kind) {
    case OriginKind::kAbsent:
      return origin.rule.empty() ? "absent" : "absent: " + origin.rule;
    case OriginKind::kField:
    case OriginKind::kSibling:
      return origin.rule.empty() ? origin.where : fmt::format("{} ({})", origin.where, origin.rule);
    case OriginKind::kDefault:
      return fmt::format("default ({})", origin.rule);
    case OriginKind::kDerived:
      return origin.where.empty() ? fmt::format("derived ({})", origin.rule)
                                  : fmt::format("derived ({}) from {}", origin.rule, origin.where);
  }
  return {};
}

}  // namespace kernelpath::config
