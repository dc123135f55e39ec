// One entry for every layer: the plan (which kind), then the details.

#include "config/layer_plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace kernelpath::config {
namespace {

Result<void> check_length(Derivation& d, const LayerPlan& plan) {
  const auto stated = d.out.num_hidden_layers.value_or(0);
  const auto length = static_cast<std::int64_t>(plan.layers.size());
  if (length == stated) return {};
  if (plan.replaces_count && length <= kMaxLayers) {
    d.read.warn(
        "CONFIG-LAYER-COUNT", plan.origin.where,
        fmt::format("{} entries for num_hidden_layers {}; the list counts", length, stated));
    d.out.num_hidden_layers = {length, {OriginKind::kDerived, plan.origin.where, "length of list"}};
    return {};
  }
  return fail(Error{.code = ErrorCode::kConfigValue,
                    .message = fmt::format("{} entries for {} layers", length, stated),
                    .where = plan.origin.where,
                    .hint = "one entry a layer is needed"});
}

// Families with Mamba fields mean a Mamba layer where newer files say "linear_attention".
void name_mamba_layers(const Derivation& d, LayerPlan& plan) {
  if (d.read.find({"linear_num_value_heads", "linear_attn_config"})) return;
  if (!d.read.find({"mamba_d_state", "ssm_state_size", "state_size", "mamba_num_heads"})) return;
  for (PlannedLayer& layer : plan.layers) {
    if (layer.kind == LayerKind::kLinear) layer.kind = LayerKind::kMamba;
  }
}

// Layers that attend to everything, but through an indexer (DeepSeek V3.2 and its kin).
void name_sparse_layers(const Derivation& d, LayerPlan& plan) {
  if (!d.out.sparse || !d.out.sparse->index_topk) return;
  const bool named =
      std::any_of(plan.layers.begin(), plan.layers.end(),
                  [](const PlannedLayer& layer) { return layer.kind == LayerKind::kSparse; });
  if (named) return;
  for (PlannedLayer& layer : plan.layers) {
    if (layer.kind == LayerKind::kFull) layer.kind = LayerKind::kSparse;
  }
}

Result<void> name_cross_layers(const Derivation& d, LayerPlan& plan) {
  KERNELPATH_TRY(indices,
                 as_integers(d.read, d.read.find_stated({"cross_attention_layers"}), {.min = 0}));
  for (const std::int64_t index : indices) {
    // Shortened models keep the indices of the whole one.
    if (index >= static_cast<std::int64_t>(plan.layers.size())) continue;
    plan.layers[static_cast<std::size_t>(index)].kind = LayerKind::kCross;
  }
  return {};
}

// BERT and its kin attend in both directions, unless the file makes a decoder of them.
Result<void> name_encoder_layers(const Derivation& d, LayerPlan& plan) {
  if (d.read.family == nullptr || !d.read.family->encoder()) return {};
  KERNELPATH_TRY(decoder, as_boolean(d.read.find_stated({"is_decoder"})));
  if (decoder.value_or(false)) return {};
  for (PlannedLayer& layer : plan.layers) {
    if (layer.kind != LayerKind::kFull && layer.kind != LayerKind::kSliding) continue;
    layer.windowed = layer.kind == LayerKind::kSliding;
    layer.kind = LayerKind::kEncoder;
  }
  return {};
}

// Families without attention heads and without a list (RWKV) keep a state in every layer.
bool only_state(const Derivation& d) {
  return !d.partial && !d.out.num_attention_heads && d.read.family != nullptr;
}

Result<LayerPlan> make_plan(Derivation& d) {
  KERNELPATH_TRY(listed, plan_from_lists(d));
  LayerPlan plan = listed;
  if (!plan.layers.empty()) KERNELPATH_CHECK_OK(check_length(d, plan));
  const auto count = static_cast<std::size_t>(*d.out.num_hidden_layers);
  if (plan.layers.empty()) {
    KERNELPATH_TRY(ruled, plan_from_rules(d, count));
    plan = ruled;
  }
  KERNELPATH_CHECK_OK(apply_window(d, plan, count));
  if (plan.layers.empty()) {
    plan.layers.resize(count);
    plan.origin = {OriginKind::kDefault, {}, "full attention in every layer"};
    if (only_state(d)) {
      for (PlannedLayer& layer : plan.layers) layer = planned(LayerKind::kLinear, true);
      plan.origin.rule = fmt::format("{} has no attention heads", d.read.family->model_type());
    }
  }
  KERNELPATH_CHECK_OK(apply_chunks(d, plan));
  return plan;
}

}  // namespace

Result<void> derive_layers(Derivation& d) {
  if (!d.out.num_hidden_layers) {
    LayerPlan nothing;
    return apply_window(d, nothing, 0);
  }
  KERNELPATH_TRY(plan, make_plan(d));
  name_mamba_layers(d, plan);
  name_sparse_layers(d, plan);
  KERNELPATH_CHECK_OK(name_cross_layers(d, plan));
  KERNELPATH_CHECK_OK(name_encoder_layers(d, plan));
  d.out.layers_origin = plan.origin;
  return fill_layer_details(d, plan);
}

}  // namespace kernelpath::config
