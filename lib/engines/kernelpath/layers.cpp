#include "engines/kernelpath/layers.h"

#include "memory/division.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

namespace kernelpath::engines::kernelpath {
namespace {

using config::LayerKind;

// Gemma 3 states the field too, and its layers do not have it.
constexpr std::string_view kCappedClass = "Gemma2ForCausalLM";
constexpr double kCappedDefault = 50;
// The classes whose keys an indexer chooses.
constexpr auto kIndexedClasses =
    std::to_array<std::string_view>({"DeepseekV32ForCausalLM", "GlmMoeDsaForCausalLM"});

constexpr std::string_view kParallelRule = "KP-PARALLEL";
// Sizes of --tp that a refusal proposes.
constexpr std::int64_t kMostRanks = 64;
// Of DeepSeek-V3.2, where config.json does not say.
constexpr std::int64_t kIndexHeadDim = 128;
// Beyond any model: products of sizes below these fit 64 bits, for every layer together.
constexpr std::int64_t kMostHeads = std::int64_t{1} << 20;
constexpr std::int64_t kWidest = std::int64_t{1} << 20;
constexpr std::int64_t kWidestState = std::int64_t{1} << 12;

class Builder {
 public:
  Builder(const Request& request, const Launch& launch, std::string_view model_class)
      : model_(request.model), request_(request), launch_(launch), class_(model_class) {}

  OwnModelLayers run() {
    for (std::size_t i = 0; i < model_.layers.size(); ++i) add(static_cast<std::int64_t>(i));
    if (model_.layers.empty()) fault("KP-LAYER-SIZE", "config.json states no layers");
    for (std::string& reason : memory::division_faults(model_, launch_.tp)) {
      fault(kParallelRule, std::move(reason));
    }
    return std::move(out_);
  }

 private:
  // Each fault once: all layers of a kind have it.
  void fault(std::string_view rule, std::string reason) {
    const bool known = std::ranges::any_of(
        out_.faults, [&](const LayerFault& fault) { return fault.reason == reason; });
    if (!known) out_.faults.push_back({.rule = rule, .reason = std::move(reason)});
  }

  void add(std::int64_t index) {
    const config::Layer& layer = model_.layers[static_cast<std::size_t>(index)];
    std::optional<OwnLayers> own = own_of(layer);
    if (!own) return;
    const auto same = std::ranges::find_if(
        out_.groups, [&](const OwnLayers& group) { return alike(group, *own); });
    OwnLayers& group = same != out_.groups.end() ? *same : out_.groups.emplace_back(*own);
    group.layers.push_back(index);
  }

  static bool alike(const OwnLayers& a, const OwnLayers& b) {
    return a.kind == b.kind && a.attention == b.attention && a.index_dim == b.index_dim &&
           a.state_bytes == b.state_bytes;
  }

  // Whether a size is one that a layer can have.
  bool sane(std::string_view name, std::int64_t size, std::int64_t most) {
    if (size >= 0 && size <= most) return true;
    fault("KP-LAYER-SIZE", fmt::format("{} of {} is outside 0 to {}", name, size, most));
    return false;
  }

  std::optional<OwnLayers> own_of(const config::Layer& layer) {
    switch (layer.kind) {
      case LayerKind::kFull:
      case LayerKind::kSliding:
      case LayerKind::kChunked:
      case LayerKind::kSparse:
        return layer.shares_kv ? refused("layers that read another layer's cache")
                               : attending(layer);
      case LayerKind::kLinear:
        return linear();
      case LayerKind::kMamba:
      case LayerKind::kEncoder:
      case LayerKind::kCross:
      case LayerKind::kNone:
        break;
    }
    return refused(fmt::format("layers of kind {}", config::layer_kind_name(layer.kind)));
  }

  std::optional<OwnLayers> refused(const std::string& what) {
    fault("KP-LAYER-KIND", fmt::format("the runtime has no {}", what));
    return std::nullopt;
  }

  std::optional<OwnLayers> attending(const config::Layer& layer) {
    OwnLayers out;
    out.kind = layer.kind;
    attention::LayerRequest request;
    request.platform = request_.device.platform;
    request.kv_type = launch_.kv_type;
    request.layout = launch_.kv_layout;
    request.page_size = launch_.page_size;
    request.context_parallel = launch_.dcp;
    // Shards are merged by their log-sum-exps.
    if (launch_.dcp > 1) request.lse_base = attention::LogBase::kE;
    request.max_seq_len =
        request_.deployment.max_model_len.value_or(model_.max_position_embeddings.value_or(0));
    if (layer.kind == LayerKind::kSliding) request.geometry.window = layer.window.value_or(0);
    if (layer.kind == LayerKind::kChunked) request.geometry.chunk = layer.window.value_or(0);
    out.window = layer.window;
    request.sinks = model_.attention_sinks.value_or(false);
    if (class_ == kCappedClass) {
      request.geometry.softcap =
          static_cast<float>(model_.attn_logit_softcapping.value_or(kCappedDefault));
    }
    request.geometry.num_heads = layer.num_attention_heads / std::max<std::int64_t>(launch_.tp, 1);
    const bool fits = model_.mla ? latent(out, request) : heads(layer, out, request);
    if (!fits) return std::nullopt;
    for (const attention::Refusal& refusal : attention::request_faults(request)) {
      fault("KP-LAYER-SIZE", refusal.reason);
      return std::nullopt;
    }
    out.attention = request;
    return out;
  }

  bool heads(const config::Layer& layer, OwnLayers& out, attention::LayerRequest& request) {
    const std::int64_t tp = launch_.tp;
    const std::int64_t kv_heads = layer.num_key_value_heads;
    if (!sane("num_attention_heads", layer.num_attention_heads, kMostHeads) ||
        !sane("num_key_value_heads", kv_heads, kMostHeads) ||
        !sane("head_dim", layer.head_dim, kWidest) ||
        !sane("v_head_dim", layer.v_head_dim, kWidest) || !divides(layer.num_attention_heads)) {
      return false;
    }
    if (kv_heads < 1 || (kv_heads % tp != 0 && tp % kv_heads != 0)) {
      fault(kParallelRule,
            fmt::format("{} KV heads and {} ranks: neither divides the other", kv_heads, tp));
      return false;
    }
    attention::Geometry& geometry = request.geometry;
    geometry.num_kv_heads = std::max<std::int64_t>(kv_heads / tp, 1);
    geometry.head_dim = layer.head_dim;
    geometry.v_head_dim = layer.v_head_dim > 0 ? layer.v_head_dim : layer.head_dim;
    geometry.softmax_scale =
        layer.head_dim > 0 ? 1.0F / std::sqrt(static_cast<float>(layer.head_dim)) : 1.0F;
    out.kv_heads = geometry.num_kv_heads;
    out.k_dim = geometry.head_dim;
    out.v_dim = geometry.v_head_dim;
    return true;
  }

  // One row for all heads, kept by every rank.
  bool latent(OwnLayers& out, attention::LayerRequest& request) {
    const config::Mla& mla = *model_.mla;
    const std::int64_t heads = model_.num_attention_heads.value_or(0);
    const std::int64_t index_dim =
        model_.sparse ? model_.sparse->index_head_dim.value_or(kIndexHeadDim) : kIndexHeadDim;
    if (!sane("num_attention_heads", heads, kMostHeads) ||
        !sane("kv_lora_rank", mla.kv_lora_rank.value_or(0), kWidest) ||
        !sane("qk_nope_head_dim", mla.qk_nope_head_dim.value_or(0), kWidest) ||
        !sane("qk_rope_head_dim", mla.qk_rope_head_dim.value_or(0), kWidest) ||
        !sane("v_head_dim", mla.v_head_dim.value_or(0), kWidest) ||
        !sane("index_head_dim", index_dim, kWidest) || !divides(heads)) {
      return false;
    }
    request.geometry.num_heads = heads / launch_.tp;
    request.mla = attention::MlaDims{.q_lora_rank = mla.q_lora_rank.value_or(0),
                                     .kv_lora_rank = mla.kv_lora_rank.value_or(0),
                                     .qk_nope_head_dim = mla.qk_nope_head_dim.value_or(0),
                                     .qk_rope_head_dim = mla.qk_rope_head_dim.value_or(0),
                                     .v_head_dim = mla.v_head_dim.value_or(0)};
    request.sparse = std::ranges::find(kIndexedClasses, class_) != kIndexedClasses.end();
    out.kv_heads = 1;
    out.k_dim = request.mla->kv_lora_rank + request.mla->qk_rope_head_dim;
    if (request.sparse) {
      out.kind = LayerKind::kSparse;
      // Every rank scores all tokens, also those whose rows others keep.
      out.index_dim = index_dim * launch_.dcp;
    }
    return true;
  }

  bool divides(std::int64_t heads) {
    if (launch_.tp >= 1 && heads > 0 && heads % launch_.tp == 0) return true;
    fault(kParallelRule,
          fmt::format("{} heads cannot be divided among {} ranks", heads, launch_.tp));
    return false;
  }

  // Kimi's delta rule: three convolution windows and a matrix a head, in float32.
  std::optional<OwnLayers> linear() {
    if (class_ != "KimiLinearForCausalLM") return refused("linear attention of this family");
    if (!model_.linear_state || !model_.linear_state->num_heads || !model_.linear_state->head_dim ||
        !model_.linear_state->conv_kernel) {
      fault("KP-LAYER-SIZE",
            "linear_attn_config lacks num_heads, head_dim or "
            "short_conv_kernel_size");
      return std::nullopt;
    }
    const config::LinearState& state = *model_.linear_state;
    if (!sane("num_heads", *state.num_heads, kWidestState) ||
        !sane("head_dim", *state.head_dim, kWidestState) ||
        !sane("short_conv_kernel_size", *state.conv_kernel, kWidestState) ||
        !divides(*state.num_heads)) {
      return std::nullopt;
    }
    const std::int64_t rank_heads = *state.num_heads / launch_.tp;
    const std::int64_t width = rank_heads * *state.head_dim;
    const std::int64_t floats =
        3 * std::max<std::int64_t>(*state.conv_kernel - 1, 0) * width + width * *state.head_dim;
    OwnLayers out;
    out.kind = LayerKind::kLinear;
    out.state_bytes = floats * static_cast<std::int64_t>(sizeof(float));
    return out;
  }

  const config::ModelConfig& model_;
  const Request& request_;
  const Launch& launch_;
  std::string_view class_;
  OwnModelLayers out_;
};

}  // namespace

OwnModelLayers own_layers(const Request& request, const Launch& launch,
                          std::string_view model_class) {
  OwnModelLayers out = Builder(request, launch, model_class).run();
  const auto parallel = std::ranges::find(out.faults, kParallelRule, &LayerFault::rule);
  if (parallel == out.faults.end()) return out;
  const std::int64_t most = std::min(request.model.num_attention_heads.value_or(1), kMostRanks);
  std::vector<std::int64_t> sizes{1};
  for (std::int64_t tp = 2; tp <= most; ++tp) {
    Launch other = launch;
    other.tp = tp;
    const std::vector<LayerFault> faults = Builder(request, other, model_class).run().faults;
    if (std::ranges::find(faults, kParallelRule, &LayerFault::rule) == faults.end()) {
      sizes.push_back(tp);
    }
  }
  parallel->reason += fmt::format("; --tp can be {}", fmt::join(sizes, ", "));
  return out;
}

}  // namespace kernelpath::engines::kernelpath
