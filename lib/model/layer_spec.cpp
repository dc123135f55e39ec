#include "model/fields.h"
#include "model/spec_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace kernelpath::model {
namespace {

using config::LayerKind;

constexpr float kV3NormalizeEps = 1e-20F;

// Groups of experts, as the routers of DeepSeek have them.
Result<void> read_groups(const Fields& fields, kernels::GroupScore score, MoeSpec& out) {
  KERNELPATH_TRY(groups, fields.integer({"n_group", "num_expert_group"}));
  KERNELPATH_TRY(top_groups, fields.integer({"topk_group"}));
  if (groups <= 1) return {};
  if (out.experts % groups != 0 || top_groups < 1 || top_groups > groups) {
    return fail(Error{.code = ErrorCode::kConfigValue,
                      .message = fmt::format("{} experts in {} groups, of which {} are chosen: "
                                             "the groups must be equal and enough",
                                             out.experts, groups, top_groups),
                      .where = fields.pointer("n_group")});
  }
  out.group_score = score;
  out.groups = groups;
  out.top_groups = top_groups;
  return {};
}

Result<void> read_deepseek_router(const Fields& fields, MoeSpec& out) {
  KERNELPATH_TRY(scaling, fields.number({"routed_scaling_factor"}));
  out.scaling = static_cast<float>(scaling);
  if (fields.family().router == RouterStyle::kDeepseekV2) {
    KERNELPATH_TRY(method, fields.text({"topk_method"}, "greedy"));
    if (method != "group_limited_greedy") return {};
    return read_groups(fields, kernels::GroupScore::kMax, out);
  }
  out.router = kernels::RouterKind::kSigmoid;
  out.correction = true;
  KERNELPATH_TRY(normalize, fields.number({"norm_topk_prob", "moe_renormalize"}));
  out.normalize = normalize != 0.0;
  out.normalize_eps = kV3NormalizeEps;
  return read_groups(fields, kernels::GroupScore::kSumOfTop2, out);
}

Result<void> read_router(const Fields& fields, MoeSpec& out) {
  switch (fields.family().router) {
    case RouterStyle::kNone:
      return {};
    case RouterStyle::kNormalised:
      out.normalize = true;
      return {};
    case RouterStyle::kQwen: {
      KERNELPATH_TRY(normalize, fields.flag("norm_topk_prob"));
      out.normalize = normalize;
      return {};
    }
    case RouterStyle::kDeepseekV2:
    case RouterStyle::kDeepseekV3:
      return read_deepseek_router(fields, out);
    case RouterStyle::kLlama4:
      out.router = kernels::RouterKind::kSigmoid;
      out.scale_input = true;
      out.layout = kernels::GateUpLayout::kHalves;
      return {};
    case RouterStyle::kGptOss: {
      KERNELPATH_TRY(limit, fields.number({"swiglu_limit"}));
      KERNELPATH_TRY(alpha, fields.number({"swiglu_alpha"}));
      out.router = kernels::RouterKind::kTopKSoftmax;
      out.biases = true;
      out.layout = kernels::GateUpLayout::kInterleaved;
      out.activation = kernels::Activation::kClamped;
      out.limit = static_cast<float>(limit);
      out.alpha = static_cast<float>(alpha);
      return {};
    }
  }
  return {};
}

Result<void> check_layer(const config::Layer& layer, std::size_t number, const DecoderSpec& spec) {
  const auto refuse = [&](std::string message) {
    return fail(Error{.code = ErrorCode::kUnavailable,
                      .message = std::move(message),
                      .where = fmt::format("layer {}", number)});
  };
  const bool supported = layer.kind == LayerKind::kFull || layer.kind == LayerKind::kSliding ||
                         layer.kind == LayerKind::kChunked || layer.kind == LayerKind::kSparse ||
                         (layer.kind == LayerKind::kLinear && spec.delta);
  if (!supported) {
    return refuse(fmt::format("{} builds no {} layers", spec.family->class_name,
                              layer_kind_name(layer.kind)));
  }
  if (layer.shares_kv) return refuse("layers that read another layer's cache cannot be built");
  const bool uniform = layer.kind == LayerKind::kLinear || spec.mla ||
                       (layer.num_attention_heads == spec.num_heads &&
                        layer.num_key_value_heads == spec.num_kv_heads &&
                        layer.head_dim == spec.head_dim && layer.v_head_dim == spec.head_dim);
  if (!uniform) return refuse("layers with heads of their own number or size cannot be built");
  return {};
}

Mixer mixer_of(const config::Layer& layer, const DecoderSpec& spec) {
  if (layer.kind == LayerKind::kLinear) return Mixer::kDelta;
  return spec.mla ? Mixer::kLatent : Mixer::kHeads;
}

// Which layers of GLM-5 choose keys, and which read the choice of the layer before.
Result<std::vector<bool>> shared_index_layers(const Fields& fields, std::size_t count) {
  std::vector<bool> out(count, false);
  const json::Value* const types = fields.find("indexer_types");
  if (types != nullptr && types->is_array()) {
    for (std::size_t l = 0; l < std::min(count, types->items().size()); ++l) {
      const json::Value& type = types->items()[l];
      out[l] = type.is_string() && type.as_string() == "shared";
    }
    return out;
  }
  KERNELPATH_TRY(pattern, fields.text({"index_topk_pattern"}, ""));
  if (!pattern.empty()) {
    for (std::size_t l = 0; l < std::min(count, pattern.size()); ++l) out[l] = pattern[l] == 'S';
    return out;
  }
  if (fields.find("index_topk_freq") == nullptr) return out;
  KERNELPATH_TRY(frequency, fields.integer({"index_topk_freq"}));
  constexpr std::int64_t kDefaultOffset = 2;
  std::int64_t offset = kDefaultOffset;
  if (fields.find("index_skip_topk_offset") != nullptr) {
    KERNELPATH_TRY(stated, fields.integer({"index_skip_topk_offset"}));
    offset = stated;
  }
  for (std::size_t l = 0; l < count; ++l) {
    const std::int64_t place = std::max<std::int64_t>(static_cast<std::int64_t>(l) - offset + 1, 0);
    out[l] = place % std::max<std::int64_t>(frequency, 1) != 0;
  }
  return out;
}

// Llama 4's dense layers are wider than its experts.
Result<std::int64_t> dense_size(const Fields& fields) {
  if (fields.family().router == RouterStyle::kLlama4) {
    KERNELPATH_TRY(own, fields.integer({"intermediate_size_mlp"}));
    if (own > 0) return own;
  }
  return required(fields.config().intermediate_size, "intermediate_size");
}

}  // namespace

Result<MoeSpec> read_moe(const Fields& fields) {
  const config::Moe& moe = *fields.config().moe;
  MoeSpec out;
  KERNELPATH_TRY(experts, required(moe.num_experts, "num_experts"));
  KERNELPATH_TRY(top_k, required(moe.num_experts_per_tok, "num_experts_per_tok"));
  const bool own_size = moe.moe_intermediate_size.value.has_value();
  KERNELPATH_TRY(inner, own_size
                            ? required(moe.moe_intermediate_size, "moe_intermediate_size")
                            : required(fields.config().intermediate_size, "intermediate_size"));
  out.experts = experts;
  out.top_k = top_k;
  out.intermediate_size = inner;
  if (!fields.family().shared_expert.empty()) {
    const bool llama4 = fields.family().router == RouterStyle::kLlama4;
    out.shared_intermediate_size = inner * (llama4 ? 1 : moe.num_shared_experts.value_or(0));
  }
  if (top_k > experts) {
    return fail(Error{.code = ErrorCode::kConfigValue,
                      .message = fmt::format("{} of {} experts cannot be chosen", top_k, experts),
                      .where = fields.pointer("num_experts_per_tok")});
  }
  KERNELPATH_CHECK_OK(read_router(fields, out));
  return out;
}

Result<void> read_layers(const Fields& fields, DecoderSpec& spec) {
  const std::vector<config::Layer>& layers = fields.config().layers;
  KERNELPATH_TRY(dense, dense_size(fields));
  KERNELPATH_TRY(shared, shared_index_layers(fields, layers.size()));
  bool tuned = false;
  if (spec.family->router == RouterStyle::kLlama4) {
    KERNELPATH_TRY(flag, fields.flag("attn_temperature_tuning"));
    tuned = flag;
  }
  spec.layers.reserve(layers.size());
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const config::Layer& layer = layers[l];
    KERNELPATH_CHECK_OK(check_layer(layer, l, spec));
    LayerSpec out;
    out.mixer = mixer_of(layer, spec);
    out.rope = layer.rope && !spec.ropes.empty();
    out.rope_table = layer.kind == LayerKind::kSliding && spec.ropes.size() > 1 ? 1 : 0;
    if (layer.kind == LayerKind::kSliding) out.window = layer.window.value_or(0);
    if (layer.kind == LayerKind::kChunked) out.chunk = layer.window.value_or(0);
    out.moe = layer.moe && spec.moe;
    out.intermediate_size = layer.intermediate_size.value_or(dense);
    out.shared_index = spec.index && l > 0 && shared[l];
    out.index = spec.index && !out.shared_index;
    out.temperature = tuned && !layer.rope;
    spec.layers.push_back(out);
  }
  return {};
}

}  // namespace kernelpath::model
