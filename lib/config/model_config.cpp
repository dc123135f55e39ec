#include "config/model_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kernelpath::config {
namespace {

bool keeps_kv(const Layer& layer) {
  return layer.kind != LayerKind::kNone && layer.kind != LayerKind::kMamba &&
         layer.kind != LayerKind::kLinear;
}

std::string heads_summary(std::int64_t heads, std::int64_t kv_heads) {
  if (heads == kv_heads) return fmt::format("MHA {}", heads);
  return fmt::format("{} {}:{}", kv_heads == 1 ? "MQA" : "GQA", heads, kv_heads);
}

std::string mla_summary(const Mla& mla) {
  std::string text = fmt::format("MLA kv_lora {}", *mla.kv_lora_rank);
  if (mla.qk_rope_head_dim) text += fmt::format(" + rope {}", *mla.qk_rope_head_dim);
  return text;
}

// "+ 36 linear" of a hybrid model: layers that do not attend, by kind.
std::string state_summary(const ModelConfig& config) {
  std::string text;
  for (const LayerKind kind : {LayerKind::kLinear, LayerKind::kMamba}) {
    const auto count = std::count_if(config.layers.begin(), config.layers.end(),
                                     [&](const Layer& layer) { return layer.kind == kind; });
    if (count == 0) continue;
    text += fmt::format(" + {} {} layer{}", count, layer_kind_name(kind), count == 1 ? "" : "s");
  }
  return text;
}

}  // namespace

std::string_view layer_kind_name(LayerKind kind) {
  constexpr std::array<std::string_view, 9> kNames = {
      "full", "sliding", "chunked", "linear", "mamba", "sparse", "encoder", "cross", "none"};
  return kNames[static_cast<std::size_t>(kind)];
}

bool ModelConfig::has_field(std::string_view field_name) const {
  return std::binary_search(present_fields.begin(), present_fields.end(), field_name,
                            std::less<>{});
}

std::string attention_summary(const ModelConfig& config) {
  if (config.mla) return mla_summary(*config.mla) + state_summary(config);
  const bool attends =
      config.layers.empty() || std::any_of(config.layers.begin(), config.layers.end(), keeps_kv);
  if (!attends || !config.num_attention_heads) {
    const std::string state = state_summary(config);
    return state.empty() ? "no attention" : state.substr(3);
  }
  const std::int64_t heads = *config.num_attention_heads;
  std::int64_t most = 0;
  std::int64_t least = heads;
  for (const Layer& layer : config.layers) {
    if (!keeps_kv(layer) || layer.num_key_value_heads == 0) continue;
    most = std::max(most, layer.num_key_value_heads);
    least = std::min(least, layer.num_key_value_heads);
  }
  if (least < most) {
    return fmt::format("GQA {}:{}-{}", heads, least, most) + state_summary(config);
  }
  return heads_summary(heads, config.num_key_value_heads.value_or(heads)) + state_summary(config);
}

}  // namespace kernelpath::config
