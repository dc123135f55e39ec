// Which attention and state layers a model's class builds, in the order of registration.
// Source: vllm/model_executor/models/*.py.

#include "engines/vllm/layer_plan.h"

#include "engines/vllm/class_layers.h"
#include "engines/vllm/flash_attn_version.h"
#include "engines/vllm/own_layers.h"

#include <fmt/format.h>

#include <algorithm>

namespace kernelpath::engines::vllm {
namespace {

constexpr std::int64_t kIndexerScaleBlock = 128;  // elements of an indexer's key with one scale
constexpr std::int64_t kScaleBytes = 4;

bool has_state(const config::Layer& layer) {
  return layer.has_state || layer.kind == config::LayerKind::kMamba ||
         layer.kind == config::LayerKind::kLinear;
}

class Planner {
 public:
  explicit Planner(const RunState& state)
      : state_(state),
        model_(state.question.model),
        class_(layers_of_class(state.question.registry, state.out.model_class, model_)) {}

  LayerPlan plan() {
    plan_.unknown = class_.unknown;
    for (std::size_t i = 0; i < model_.layers.size(); ++i) {
      add_decoder_layer(model_.layers[i], static_cast<std::int64_t>(i));
    }
    // Zamba2 builds its shared attention before the layers that use it.
    if (state_.view().model_type == "zamba2") {
      std::stable_partition(
          plan_.layers.begin(), plan_.layers.end(),
          [](const PlannedLayer& planned) { return planned.layer.role != LayerRole::kState; });
    }
    std::ranges::sort(plan_.unknown);
    plan_.unknown.erase(std::unique(plan_.unknown.begin(), plan_.unknown.end()),
                        plan_.unknown.end());
    return std::move(plan_);
  }

 private:
  void add_decoder_layer(const config::Layer& layer, std::int64_t index) {
    if (class_.state == "plamo2") return add_plamo2(layer, index);
    const bool attends = layer.kind != config::LayerKind::kNone &&
                         layer.kind != config::LayerKind::kMamba &&
                         layer.kind != config::LayerKind::kLinear;
    if (class_.transformers && !attends) return add_foreign(layer, index);
    if (attends && layer.shares_kv && class_.shares_cache) {
      ++plan_.sharing;
    } else if (attends) {
      add_attention(layer, index);
    }
    if (has_state(layer) && !class_.transformers) add_state(index);
  }

  void add_plamo2(config::Layer layer, std::int64_t index) {
    if (!attends_plamo2(model_, index)) return add_state(index);
    layer.head_dim = state_.view().head_size;
    layer.v_head_dim = layer.head_dim;
    add_attention(layer, index);
  }

  // The library's own code runs the layer. Until 0.32 each layer gets a cache, whether it attends
  // or not.
  void add_foreign(config::Layer layer, std::int64_t index) {
    if (state_.profile().at_least(0, 33)) {
      if (plan_.error) return;
      plan_.error = RunError{
          .stage = "model",
          .type = "ValueError",
          .text = fmt::format("Layer {} ({}) does not dispatch through the Transformers attention "
                              "interface and vLLM has no other way to handle it.",
                              index, config::layer_kind_name(layer.kind)),
          .rule = "VLLM-LAYER-NO-INTERFACE"};
      return;
    }
    layer.kind = config::LayerKind::kFull;
    layer.num_attention_heads = state_.view().total_heads;
    layer.num_key_value_heads = state_.view().total_kv_heads;
    layer.head_dim = state_.view().head_size;
    layer.v_head_dim = layer.head_dim;
    add_attention(layer, index);
  }

  // Whether the class builds the layer in its own way; what it cannot be told is a reason.
  bool add_own(const config::Layer& layer, std::int64_t index) {
    const bool sinks =
        class_.static_sink && text_integer(model_, "param_sink_number").value_or(0) > 0;
    bool known = true;
    if (class_.own == "minimax_m3" && layer.kind == config::LayerKind::kSparse) {
      known = plan_minimax_m3(state_, layer, base(index), plan_);
    } else if (class_.own == "inkling") {
      known = plan_inkling(state_, layer, base(index), plan_);
    } else if (sinks && !state_.view().use_mla) {
      known = plan_static_sink(state_, layer, base(index), plan_);
    } else {
      return false;
    }
    if (!known) {
      plan_.unknown.push_back("attention of " + state_.out.model_class.class_name +
                              ": the configuration lacks its sizes");
    }
    return true;
  }

  void add_attention(const config::Layer& layer, std::int64_t index) {
    if (add_own(layer, index)) return;
    if (state_.view().use_mla && class_.latent) {
      for (std::int64_t i = 0; i < model_.attentions_per_layer; ++i) add_latent(index, i);
      return;
    }
    if (!class_.attention && !class_.encoder_only) {
      if (!class_.cross && class_.unknown.empty() && class_.latent) {
        plan_.unknown.emplace_back("MLAAttention");
      }
      return;
    }
    add_plain(layer, index);
    if (class_.cross && state_.view().encoder_decoder) add_cross(layer, index);
  }

  [[nodiscard]] PlannedLayer base(std::int64_t index) const {
    PlannedLayer out;
    out.layer.index = index;
    out.layer.name = fmt::format("model.layers.{}.self_attn.attn", index);
    out.layer.kv_dtype = state_.run().cache_dtype;
    return out;
  }

  void add_plain(const config::Layer& layer, std::int64_t index) {
    PlannedLayer out = base(index);
    const std::int64_t tp = state_.run().tp;
    out.layer.num_heads = layer.num_attention_heads / tp;
    out.layer.num_kv_heads = std::max<std::int64_t>(1, layer.num_key_value_heads / tp);
    out.layer.head_size = layer.head_dim;
    out.layer.head_size_v = class_.value_size ? layer.v_head_dim : layer.head_dim;
    out.layer.window = window_of(layer);
    out.layer.sink = has_sink(layer);
    out.alibi = uses_alibi();
    out.alibi_sqrt = class_.alibi_sqrt;
    out.soft_cap = class_.soft_cap && model_.attn_logit_softcapping.value.has_value();
    if (class_.recent_window) out.layer.rswa_window = text_integer(model_, "rswa_window");
    wrap(layer, out);
    if (out.layer.head_size_v != out.layer.head_size) choose_unequal(out);
    plan_.layers.push_back(std::move(out));
  }

  void wrap(const config::Layer& layer, PlannedLayer& out) const {
    const bool masked =
        class_.attention && state_.view().causal && layer.kind != config::LayerKind::kEncoder;
    if (class_.encoder_only && !masked) {
      out.layer.role = LayerRole::kEncoderOnly;
      out.wrapped = true;
      out.prefix = "EncoderOnlyAttention_";
      out.attention_type = "encoder_only";
    } else if (layer.kind == config::LayerKind::kChunked && class_.lookback) {
      out.lookback = true;
      out.layer.window = text_integer(model_, "sliding_window");
    } else if (layer.kind == config::LayerKind::kChunked && layer.window) {
      out.layer.chunk = layer.window;
      out.wrapped = true;
      out.prefix = fmt::format("ChunkedLocalAttention_{}_", *layer.window);
    } else if (out.layer.rswa_window) {
      out.wrapped = true;
      out.prefix = "RSWAAttention_";
    }
  }

  // K and V of unequal size: the name that ends with _DIFFKV, else FlashAttention 3 or 4, else
  // Triton. The layer is not validated.
  void choose_unequal(PlannedLayer& out) const {
    const std::optional<std::string>& asked = state_.run().attention_backend;
    if (asked && asked->ends_with("_DIFFKV")) {
      out.fixed_backend = *asked;
      return;
    }
    const auto version = flash_attn_version(state_.context(), {.head_size = out.layer.head_size,
                                                               .head_size_v = out.layer.head_size_v,
                                                               .has_sinks = out.layer.sink});
    out.fixed_backend = version.value_or(0) >= 3 ? "FLASH_ATTN_DIFFKV" : "TRITON_ATTN_DIFFKV";
  }

  void add_cross(const config::Layer& layer, std::int64_t index) {
    PlannedLayer out = base(index);
    out.layer.role = LayerRole::kCross;
    out.layer.name = fmt::format("model.decoder.layers.{}.encoder_attn.attn", index);
    out.layer.num_heads = layer.num_attention_heads / state_.run().tp;
    out.layer.num_kv_heads = std::max<std::int64_t>(1, layer.num_key_value_heads / state_.run().tp);
    out.layer.head_size = layer.head_dim;
    out.layer.head_size_v = layer.head_dim;
    out.wrapped = true;
    out.prefix = "CrossAttention_";
    out.attention_type = "encoder_decoder";
    plan_.layers.push_back(std::move(out));
  }

  void add_latent(std::int64_t index, std::int64_t which) {
    const bool own = class_.own == "hy_v4";
    const bool sparse =
        own ? is_sparse_hy_v4(model_, index) : state_.view().sparse && class_.indexer;
    const bool indexes = own ? has_indexer_hy_v4(model_, index) : !shares_indices(index);
    if (sparse && indexes) add_indexer(index);
    PlannedLayer out = base(index);
    if (model_.attentions_per_layer > 1) {
      out.layer.name = fmt::format("model.layers.{}.self_attn.{}.attn", index, which);
    }
    out.layer.role = LayerRole::kMla;
    out.layer.num_heads = state_.view().heads;
    out.layer.num_kv_heads = 1;
    out.layer.head_size = state_.view().head_size;
    out.layer.head_size_v = text_integer(model_, "kv_lora_rank").value_or(out.layer.head_size);
    out.layer.sparse = sparse;
    out.latent_sink = own && text_integer(model_, "learnable_sink").value_or(0) != 0;
    plan_.layers.push_back(std::move(out));
  }

  // Some layers take the tokens that an earlier layer's indexer chose.
  [[nodiscard]] bool shares_indices(std::int64_t index) const {
    const json::Value* pattern = model_.file.find_non_null("index_topk_pattern");
    if (pattern != nullptr && pattern->is_string()) {
      const std::string& text = pattern->as_string();
      const auto at = static_cast<std::size_t>(index);
      return at < text.size() && text[at] == 'S';
    }
    const std::int64_t every =
        std::max<std::int64_t>(1, text_integer(model_, "index_topk_freq").value_or(1));
    const std::int64_t offset = text_integer(model_, "index_skip_topk_offset").value_or(2);
    return std::max<std::int64_t>(index - offset + 1, 0) % every != 0;
  }

  void add_indexer(std::int64_t index) {
    PlannedLayer out = base(index);
    const std::int64_t size = text_integer(model_, "index_head_dim").value_or(kIndexerScaleBlock);
    out.layer.role = LayerRole::kIndexer;
    out.layer.name = fmt::format("model.layers.{}.self_attn.indexer.k_cache", index);
    out.layer.head_size = size + size / kIndexerScaleBlock * kScaleBytes;
    out.layer.head_size_v = out.layer.head_size;
    out.layer.num_kv_heads = 1;
    out.layer.kv_dtype = "uint8";
    out.layer.class_name = "DeepseekV32IndexerBackend";
    out.layer.backend = state_.profile().find_layer_class(out.layer.class_name);
    out.layer.reported_backend = "DEEPSEEK_V32_INDEXER";
    plan_.layers.push_back(std::move(out));
  }

  void add_state(std::int64_t index) {
    PlannedLayer out = base(index);
    out.layer.name = fmt::format("model.layers.{}.mixer", index);
    if (class_.state.empty() || !fill_state(state_, class_.state, out.layer)) {
      plan_.unknown.emplace_back("state layers of " + state_.out.model_class.class_name);
      return;
    }
    plan_.layers.push_back(std::move(out));
  }

  // The window of a layer: its own, or the model's where all layers have it.
  [[nodiscard]] std::optional<std::int64_t> window_of(const config::Layer& layer) const {
    if (layer.kind != config::LayerKind::kSliding) return std::nullopt;
    if (class_.windows) return layer.window;
    const bool all = std::ranges::all_of(model_.layers, [](const config::Layer& other) {
      return other.kind == config::LayerKind::kSliding;
    });
    return all ? layer.window : std::nullopt;
  }

  // Which layers of a class that knows sinks have one.
  [[nodiscard]] bool has_sink(const config::Layer& layer) const {
    if (!class_.sinks) return false;
    const std::string& type = state_.view().model_type;
    const bool slides = layer.kind == config::LayerKind::kSliding;
    if (type.starts_with("mimo_v2")) {
      return slides && text_integer(model_, "add_swa_attention_sink_bias").value_or(0) != 0;
    }
    if (type == "gpt_oss" || type == "openai_privacy_filter" || type == "flint") return true;
    if (type.starts_with("granite")) {
      return text_integer(model_, "attention_sinks")
                 .value_or(has_text_field(model_, "layer_types") ? 1 : 0) != 0;
    }
    if (type == "laguna") {
      return slides && text_integer(model_, "swa_attention_sink_enabled").value_or(0) != 0;
    }
    return model_.attention_sinks.value_or(false);
  }

  [[nodiscard]] bool uses_alibi() const {
    if (!class_.alibi) return false;
    if (!state_.view().model_type.starts_with("falcon")) return true;
    return text_integer(model_, "alibi").value_or(0) != 0;
  }

  const RunState& state_;
  const config::ModelConfig& model_;
  ClassLayers class_;
  LayerPlan plan_;
};

}  // namespace

LayerPlan plan_layers(const RunState& state) { return Planner(state).plan(); }

}  // namespace kernelpath::engines::vllm
