#include "engines/vllm/model_view.h"

#include <algorithm>
#include <array>

namespace kernelpath::engines::vllm {
namespace {

// Model types with latent attention; `since` names the minor release that added one, `until` the
// last that had it under this spelling.
struct LatentType {
  std::string_view name;
  int since = 0;
  int until = 1000;
};

constexpr auto kLatentTypes = std::to_array<LatentType>({
    {"AXK1", 0, 32},
    {"axk1", 33},
    {"deepseek_v2"},
    {"deepseek_v3"},
    {"deepseek_v32"},
    {"deepseek_v4"},
    {"deepseek_v41", 33},
    {"deepseek_mtp"},
    {"dots3_note", 33},
    {"glm_moe_dsa"},
    {"glm4_moe_lite"},
    {"glm4_moe_lite_mtp"},
    {"glm5_next", 33},
    {"glm5_next_text", 33},
    {"hy_v4", 33},
    {"hy_v4_mtp", 33},
    {"k3_dspark", 33},
    {"kimi_k2"},
    {"kimi_linear"},
    {"longcat_flash"},
    {"pangu_ultra_moe"},
    {"pangu_ultra_moe_mtp"},
    {"bailing_hybrid"},
    {"bailing_hybrid_mtp"},
    {"bailing_hybrid_v3_mtp", 33},
});

constexpr std::array<std::string_view, 5> kImagePrefixTypes = {"bagel", "gemma3", "molmo2",
                                                               "moondream3", "paligemma"};

bool has_latent_attention(std::string_view model_type, const Profile& profile) {
  return std::ranges::any_of(kLatentTypes, [&](const LatentType& type) {
    return type.name == model_type && profile.release.minor >= type.since &&
           profile.release.minor <= type.until;
  });
}

template <class Pairs>
const typename Pairs::value_type* find_pair(const Pairs& pairs, std::string_view name) {
  const auto found = std::ranges::lower_bound(
      pairs, name, {}, [](const auto& pair) { return std::string_view(pair.first); });
  return found == pairs.end() || found->first != name ? nullptr : &*found;
}

bool has_compress_ratios(const config::ModelConfig& model, const Profile& profile) {
  if (!has_text_field(model, "compress_ratios")) return false;
  return !profile.at_least(0, 33) || (model.sparse && !model.sparse->compress_ratios.empty());
}

bool is_mla(const config::ModelConfig& model, const ModelView& view, const Profile& profile) {
  if (!has_latent_attention(view.model_type, profile)) return false;
  if (has_compress_ratios(model, profile)) return text_integer(model, "head_dim").has_value();
  return text_integer(model, "kv_lora_rank").has_value();
}

bool is_gemma4(std::string_view model_type) {
  return model_type.starts_with("gemma4") || model_type == "diffusion_gemma";
}

bool is_image_prefix(const config::ModelConfig& model, const ModelView& view,
                     const Profile& profile) {
  if (is_gemma4(view.model_type)) {
    return text_string(model, "use_bidirectional_attention") == "vision";
  }
  if (model.has_field("is_mm_prefix_lm")) {
    return text_integer(model, "is_mm_prefix_lm").value_or(0) != 0;
  }
  const std::string outer = model.model_type.value_or("");
  if (outer == "umm") return !profile.at_least(0, 33);
  return std::ranges::find(kImagePrefixTypes, outer) != kImagePrefixTypes.end();
}

constexpr std::array<std::string_view, 5> kKvHeadNames = {
    "n_head_kv", "num_kv_heads", "num_key_value_heads", "multi_query_group_num",
    "num_attention_groups"};

// The first name that the configuration states, whatever single layers have.
std::int64_t total_kv_heads(const config::ModelConfig& model, const ModelView& view) {
  const bool one = text_integer(model, "multi_query").value_or(0) != 0 &&
                   text_integer(model, "new_decoder_architecture").value_or(0) == 0;
  if (view.model_type == "falcon" && one) return 1;
  for (const std::string_view name : kKvHeadNames) {
    if (const auto heads = text_integer(model, name)) return *heads;
  }
  // What a list states is the engine's first attention layer's.
  for (const config::Layer& layer : model.layers) {
    if (layer.num_key_value_heads > 0 && !model.num_key_value_heads_list.empty()) {
      return layer.num_key_value_heads;
    }
  }
  return model.num_key_value_heads.value_or(model.num_attention_heads.value_or(0));
}

std::int64_t stated_head_size(const config::ModelConfig& model, std::int64_t heads) {
  const auto positive = [&](std::string_view name) {
    const auto value = text_integer(model, name);
    return value && *value > 0 ? *value : 0;
  };
  if (const std::int64_t size = positive("head_dim")) return size;
  if (const std::int64_t size = positive("hidden_size_per_head")) return size;
  // The Transformers library's MiniCPM3 takes the rotary part for the head.
  if (text_string(model, "model_type") == "minicpm3") return positive("qk_rope_head_dim");
  if (model.head_dim.value.has_value() &&
      model.head_dim.origin.kind != config::OriginKind::kDerived) {
    return *model.head_dim;
  }
  return heads == 0 ? 0 : model.hidden_size.value_or(0) / heads;
}

std::int64_t head_size(const config::ModelConfig& model, const ModelView& view, bool latent,
                       const RunFlags& flags, const Profile& profile) {
  if (view.model_type == "mamba" || view.model_type == "falcon_mamba") return 0;
  if (is_gemma4(view.model_type)) {
    const std::int64_t larger = std::max(text_integer(model, "head_dim").value_or(0),
                                         text_integer(model, "global_head_dim").value_or(0));
    if (larger > 0) return larger;
  }
  if (view.model_type == "zamba2") {
    return text_integer(model, "attention_head_dim").value_or(model.head_dim.value_or(0));
  }
  if (latent) {
    if (has_compress_ratios(model, profile)) return text_integer(model, "head_dim").value_or(0);
    const std::int64_t rope = text_integer(model, "qk_rope_head_dim").value_or(0);
    if (!flags.mla_disabled) return text_integer(model, "kv_lora_rank").value_or(0) + rope;
    const std::int64_t nope = text_integer(model, "qk_nope_head_dim").value_or(0);
    if (rope > 0 && nope > 0) return rope + nope;
  }
  return stated_head_size(model, view.total_heads);
}

// A hybrid class may come without a single state layer; which names of kinds tell depends on the
// release.
bool only_attention(const config::ModelConfig& model, const Profile& profile) {
  const json::Value* types = model.file.find_non_null("layer_types");
  if (types == nullptr || !types->is_array()) return false;
  return std::ranges::all_of(types->items(), [&](const json::Value& type) {
    if (!type.is_string()) return false;
    return type.as_string() == "attention" ||
           (profile.at_least(0, 33) && type.as_string() == "full_attention");
  });
}

}  // namespace

std::optional<std::int64_t> text_integer(const config::ModelConfig& model, std::string_view name) {
  const auto* pair = find_pair(model.text_integers, name);
  return pair == nullptr ? std::nullopt : std::optional<std::int64_t>(pair->second);
}

std::string_view text_string(const config::ModelConfig& model, std::string_view name) {
  const auto* pair = find_pair(model.text_strings, name);
  return pair == nullptr ? std::string_view() : std::string_view(pair->second);
}

bool has_text_field(const config::ModelConfig& model, std::string_view name) {
  return std::ranges::binary_search(model.present_text_fields, name);
}

ModelView view_model(const config::ModelConfig& model, const ModelClass& model_class,
                     const RunFlags& flags, const Profile& profile) {
  ModelView view;
  const std::string_view stated = text_string(model, "model_type");
  view.model_type = stated.empty() ? model.text_model_type : std::string(stated);
  view.pooling = model_class.runner == "pooling";
  view.attention_free = model_class.info.is_attention_free;
  view.hybrid = model_class.info.is_hybrid && !only_attention(model, profile);
  view.encoder_decoder = model.is_encoder_decoder.value_or(false);
  view.hidden_size = model.hidden_size.value_or(0);
  view.num_layers = model.num_hidden_layers.value_or(0);
  view.total_heads = model.num_attention_heads.value_or(0);
  const bool latent = is_mla(model, view, profile);
  view.use_mla = latent && !flags.mla_disabled;
  view.sparse = has_text_field(model, "index_topk");
  view.mm_prefix = is_image_prefix(model, view, profile);
  view.total_kv_heads = view.attention_free ? 0 : total_kv_heads(model, view);
  view.head_size = head_size(model, view, latent, flags, profile);
  view.heads = view.total_heads / flags.tp;
  view.kv_heads = view.use_mla ? 1
                  : view.total_kv_heads == 0
                      ? 0
                      : std::max<std::int64_t>(1, view.total_kv_heads / flags.tp);
  // MiMo-V2 states a chunk that it does not use.
  if (!view.model_type.starts_with("mimo_v2")) {
    view.attention_chunk_size = model.attention_chunk_size.value;
  }
  if (view.pooling) view.pooling_type = model_class.info.default_seq_pooling_type;
  view.encoder_only = view.pooling && (view.pooling_type == "CLS" ||
                                       model_class.info.attention_type == "encoder_only");
  view.diffusion = text_integer(model, "canvas_length").has_value();
  return view;
}

ModelFacts facts_of(const config::ModelConfig& model, const ModelView& view) {
  ModelFacts facts;
  facts.qk_nope_head_dim = text_integer(model, "qk_nope_head_dim");
  facts.qk_rope_head_dim = text_integer(model, "qk_rope_head_dim");
  facts.v_head_dim = text_integer(model, "v_head_dim");
  facts.kv_lora_rank = text_integer(model, "kv_lora_rank");
  facts.index_topk = text_integer(model, "index_topk");
  facts.index_topk_in_top_config = model.has_field("index_topk");
  facts.num_heads = view.heads;
  facts.num_kv_heads = view.kv_heads;
  facts.head_size = view.head_size;
  facts.is_diffusion = view.diffusion;
  facts.is_mm_prefix_lm = view.mm_prefix;
  facts.has_softcap = model.attn_logit_softcapping.value.has_value();
  facts.rswa_window = text_integer(model, "rswa_window");
  facts.rotary_share = model.rope.partial_rotary_factor.value_or(1.0);
  return facts;
}

}  // namespace kernelpath::engines::vllm
