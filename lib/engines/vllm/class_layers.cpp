#include "engines/vllm/class_layers.h"

#include "config/family.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace kernelpath::engines::vllm {
namespace {

struct LayerName {
  std::string_view name;
  bool ClassLayers::*flag;
};

constexpr auto kLayerNames = std::to_array<LayerName>({
    {"Attention", &ClassLayers::attention},
    {"ChunkedLocalAttention", &ClassLayers::attention},
    {"EncoderOnlyAttention", &ClassLayers::encoder_only},
    {"CrossAttention", &ClassLayers::cross},
    {"MLAAttention", &ClassLayers::latent},
    {"MultiHeadLatentAttentionWrapper", &ClassLayers::latent},
    {"MultiHeadLatentAttention", &ClassLayers::latent},
    {"DeepseekV32IndexerCache", &ClassLayers::indexer},
    {"RSWAAttention", &ClassLayers::recent_window},
    {"StaticSinkAttention", &ClassLayers::static_sink},
});

constexpr auto kArguments = std::to_array<LayerName>({
    {"per_layer_sliding_window", &ClassLayers::windows},
    {"sinks", &ClassLayers::sinks},
    {"logits_soft_cap", &ClassLayers::soft_cap},
    {"alibi_slopes", &ClassLayers::alibi},
    {"use_alibi_sqrt", &ClassLayers::alibi_sqrt},
    {"kv_sharing_target_layer_name", &ClassLayers::shares_cache},
    {"head_size_v", &ClassLayers::value_size},
    {"chunk_lookback", &ClassLayers::lookback},
});

struct StateName {
  std::string_view name;
  std::string_view kind;
};

constexpr auto kStateNames = std::to_array<StateName>({
    {"MambaMixer", "mamba1"},
    {"MambaMixer2", "mamba2"},
    {"ShortConv", "short_conv"},
    {"QwenGatedDeltaNetAttention", "gdn"},
    {"OlmoHybridGatedDeltaNetAttention", "gdn"},
    {"KimiGatedDeltaNetAttention", "kda"},
    {"KimiK3DeltaAttention", "kda"},
    {"MiniMaxText01LinearAttention", "linear"},
    {"BailingMoELinearAttention", "bailing_linear"},
    {"BailingMoeV3KimiDeltaAttention", "kda"},
    {"Glm5NextLinearAttention", "kda"},
    {"Plamo2MambaMixer", "plamo2"},
});

// Layers that a class builds in its own way.
constexpr auto kOwnNames = std::to_array<StateName>({
    {"MiniMaxM3IndexerCache", "minimax_m3"},
    {"MiniMaxM3SparseAttention", "minimax_m3"},
    {"InklingAttention", "inkling"},
    {"InklingConvState", "inkling"},
});

// What is left out of the answer, where a reason tells more than the name.
constexpr auto kReasons = std::to_array<StateName>({
    {"Step5CSATailRing", "rings of one block a sequence (CircularBufferSpec)"},
    {"Step5SparseSummaryCacheLayer", "summaries beside the rings of its sparse layers"},
    {"Qwen4ExpQSAAttention", "query-sparse attention and its rings (CircularBufferSpec)"},
    {"_QSAStateCache", "query-sparse attention and its rings (CircularBufferSpec)"},
    {"Qwen4ExpPLELayer", "windows of its per-layer embeddings' convolutions"},
    {"CacheOnlyAttentionLayer", "the cache of hidden states that a KV connector reads"},
});

bool set_flag(const auto& names, std::string_view name, ClassLayers& out) {
  const auto found = std::ranges::find(names, name, &LayerName::name);
  if (found == names.end()) return false;
  out.*(found->flag) = true;
  return true;
}

// "Attention(attn_type, sinks)".
void add_layer(std::string_view text, ClassLayers& out) {
  const std::size_t open = text.find('(');
  const std::string_view name = text.substr(0, open);
  if (!set_flag(kLayerNames, name, out)) {
    const auto* const state = std::ranges::find(kStateNames, name, &StateName::name);
    const auto* const own = std::ranges::find(kOwnNames, name, &StateName::name);
    const auto* const reason = std::ranges::find(kReasons, name, &StateName::name);
    if (state != kStateNames.end()) {
      out.state = state->kind;
    } else if (own != kOwnNames.end()) {
      out.own = own->kind;
    } else {
      out.unknown.emplace_back(reason != kReasons.end() ? reason->kind : name);
    }
  }
  while (open != std::string_view::npos && text.size() > open) {
    const std::size_t comma = text.rfind(", ");
    const std::size_t begin = comma == std::string_view::npos ? open + 1 : comma + 2;
    set_flag(kArguments, text.substr(begin, text.find_last_not_of(')') + 1 - begin), out);
    if (comma == std::string_view::npos) break;
    text = text.substr(0, comma);
  }
}

void add_row(const ArchitectureRow& row, ClassLayers& out) {
  for (const std::string& layer : row.builds) add_layer(layer, out);
  if (row.module == "vllm.models.hy_v4") out.own = "hy_v4";
  if (row.module == "vllm.models.glm5next") {
    out.unknown.emplace_back("the ring of its indexer's unfinished pool (CircularBufferSpec)");
  }
}

const ArchitectureRow* row_of_class(const ModelRegistry& registry, const ModelClass& found) {
  if (const ArchitectureRow* row = registry.find(found.architecture)) return row;
  const auto row = std::ranges::find_if(registry.architectures, [&](const ArchitectureRow& other) {
    return other.class_name == found.class_name && other.module == found.module;
  });
  return row == registry.architectures.end() ? nullptr : &*row;
}

// The class that serves the language model inside a multimodal one; null pointer if none is known.
const ArchitectureRow* language_model(const ModelRegistry& registry,
                                      const config::ModelConfig& model) {
  const config::Family* family = config::find_family(model.text_model_type);
  if (family == nullptr || family->generating_class().empty()) return nullptr;
  return registry.find(family->generating_class());
}

// The Transformers backend replaces a model's attention by the engine's, layer by layer.
ClassLayers transformers_layers(const config::ModelConfig& model) {
  ClassLayers out;
  out.attention = true;
  out.windows = true;
  out.transformers = true;
  out.soft_cap = model.attn_logit_softcapping.value.has_value();
  out.encoder_only = true;
  return out;
}

}  // namespace

ClassLayers layers_of_class(const ModelRegistry& registry, const ModelClass& found,
                            const config::ModelConfig& model) {
  if (found.transformers_backend) return transformers_layers(model);
  ClassLayers out;
  const ArchitectureRow* row = row_of_class(registry, found);
  if (row == nullptr) {
    out.unknown.push_back(found.class_name);
    return out;
  }
  if (std::ranges::find(row->categories, "transformers_supported") != row->categories.end()) {
    return transformers_layers(model);
  }
  add_row(*row, out);
  if (!row->delegates || out.attention || out.latent) return out;
  const ArchitectureRow* inner = language_model(registry, model);
  if (inner != nullptr && inner != row && !inner->builds.empty()) {
    add_row(*inner, out);
  } else {
    out.attention = true;
    out.windows = true;
  }
  return out;
}

}  // namespace kernelpath::engines::vllm
