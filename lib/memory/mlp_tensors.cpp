#include "memory/geometry.h"

#include <algorithm>

namespace kernelpath::memory {
namespace {

// What the projections of an MLP are called below the layer's MLP module.
struct Names {
  std::string_view gate;
  std::string_view up;
  std::string_view down;
};
constexpr Names kDense{"gate_proj", "up_proj", "down_proj"};
constexpr Names kRouted{"experts.gate_proj", "experts.up_proj", "experts.down_proj"};
constexpr Names kShared{"shared_experts.gate_proj", "shared_experts.up_proj",
                        "shared_experts.down_proj"};
constexpr Names kGatedShared{"shared_expert.gate_proj", "shared_expert.up_proj",
                             "shared_expert.down_proj"};

// One MLP, or `count` equal ones.
struct Mlp {
  Part part = Part::kMlp;
  Names names = kDense;
  Size input;
  Size width;
  std::int64_t count = 1;
  bool bias = false;
};

void append(const Family& family, const Mlp& mlp, std::vector<Tensor>& out) {
  const auto add = [&](std::string_view name, Size rows, Size columns, Split split) {
    out.push_back({.part = mlp.part,
                   .module = family.mlp_module,
                   .name = name,
                   .rows = rows,
                   .columns = columns,
                   .split = split,
                   .bias = mlp.bias,
                   .count = mlp.count,
                   .routed = mlp.part == Part::kExperts});
  };
  if (family.gated_mlp) add(mlp.names.gate, mlp.width, mlp.input, Split::kRows);
  add(mlp.names.up, mlp.width, mlp.input, Split::kRows);
  add(mlp.names.down, mlp.input, mlp.width, Split::kColumns);
}

Tensor& append_plain(const Family& family, std::string_view name, Size rows, Size columns,
                     std::vector<Tensor>& out) {
  return out.emplace_back(Tensor{.part = Part::kRouter,
                                 .module = family.mlp_module,
                                 .name = name,
                                 .rows = rows,
                                 .columns = columns,
                                 .storage = Storage::kPlain});
}

// The inner width of a layer's dense MLP.
std::int64_t dense_width(const Geometry& geometry, const config::Layer& layer) {
  const std::int64_t width =
      layer.intermediate_size.value_or(geometry.model.intermediate_size.value_or(0));
  // GPT-2 and its kin state none: four times the model's.
  if (width <= 0 && !geometry.family.gated_mlp) {
    return (Size(geometry.integer_or("expansion_ratio", 4)) * geometry.hidden).value();
  }
  // Source: transformers 5.24.0, models/lfm2/modeling_lfm2.py (Lfm2MLP)
  if (geometry.family.model_type == "lfm2" &&
      geometry.integer_or("block_auto_adjust_ff_dim", 1) != 0) {
    const std::int64_t multiple =
        std::max<std::int64_t>(geometry.integer_or("block_multiple_of", 256), 1);
    return (ceil_div(Size(width - width / 3), multiple) * multiple).value();
  }
  return width;
}

void append_activation(const Family& family, std::vector<Tensor>& out) {
  if (family.activation_parameters == 0) return;
  out.push_back({.part = Part::kMlp,
                 .module = family.mlp_module,
                 .name = "act_fn",
                 .rows = family.activation_parameters,
                 .storage = Storage::kPlain});
}

// The width of all shared experts of a layer together; 0 without any.
std::int64_t shared_width(const Geometry& geometry, const config::Moe& moe) {
  // Llama 4 always has one, as wide as a routed expert.
  if (geometry.family.model_type == "llama4_text") return moe.moe_intermediate_size.value_or(0);
  if (moe.shared_intermediate_size) return *moe.shared_intermediate_size;
  const Size width =
      Size(moe.num_shared_experts.value_or(0)) * moe.moe_intermediate_size.value_or(0);
  return width.value();
}

void append_experts(const Geometry& geometry, const LayerShape& shape, const config::Moe& moe,
                    std::vector<Tensor>& out) {
  const Family& family = geometry.family;
  const std::int64_t experts = moe.num_experts.value_or(0);
  const Size latent = family.fused_latent ? geometry.integer_or("moe_latent_size", 0) : 0;
  const bool in_latent_space = latent.value() > 0;
  // LongCat's router also knows experts that pass their input on and have no weights.
  const Size targets = Size(experts) + Size(geometry.integer_or("zero_expert_num", 0));
  append_plain(family, "gate", targets, geometry.hidden, out).bias =
      geometry.flag(family.router_bias);
  if (family.correction_bias && !shape.hashed_router) {
    append_plain(family, "gate.e_score_correction_bias", targets, 1, out);
    out.back().storage = Storage::kFloat32;
  }
  if (in_latent_space) {
    append_plain(family, "fc1_latent_proj", latent, geometry.hidden, out);
    append_plain(family, "fc2_latent_proj", geometry.hidden, latent, out);
  }
  if (family.model_type == "gemma4_text") {
    append_plain(family, "router.scale", geometry.hidden, 1, out);
    append_plain(family, "router.per_expert_scale", experts, 1, out);
  }
  append(family,
         {.part = Part::kExperts,
          .names = kRouted,
          .input = in_latent_space ? latent : Size(geometry.hidden),
          .width = moe.moe_intermediate_size.value_or(0),
          .count = experts,
          .bias = family.expert_bias},
         out);
}

}  // namespace

void append_mlp(const Geometry& geometry, const LayerShape& shape, std::vector<Tensor>& out) {
  const Family& family = geometry.family;
  const config::Layer& layer = shape.layer;
  const bool routed = layer.moe && geometry.model.moe.has_value();
  const int dense = routed && !family.dense_beside_experts ? 0 : family.halves;
  for (int half = 0; half < dense; ++half) {
    append(family,
           {.input = geometry.hidden,
            .width = dense_width(geometry, layer),
            .bias = geometry.flag(family.mlp_bias)},
           out);
    append_activation(family, out);
  }
  if (!routed) return;
  const config::Moe& moe = *geometry.model.moe;
  append_experts(geometry, shape, moe, out);
  const std::int64_t shared = shared_width(geometry, moe);
  if (shared <= 0) return;
  append(family,
         {.part = Part::kSharedExperts,
          .names = family.shared_expert_gate ? kGatedShared : kShared,
          .input = geometry.hidden,
          .width = shared},
         out);
  if (family.shared_expert_gate)
    append_plain(family, "shared_expert_gate", 1, geometry.hidden, out);
}

}  // namespace kernelpath::memory
