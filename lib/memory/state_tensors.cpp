#include "memory/geometry.h"
#include "memory/module.h"

#include <algorithm>

namespace kernelpath::memory {
namespace {

// The numbers of LinearState with 0 for what is absent.
struct State {
  explicit State(const config::LinearState& state)
      : kernel(state.conv_kernel.value_or(0)),
        size(state.state_size.value_or(0)),
        heads(state.num_heads.value_or(0)),
        head_dim(state.head_dim.value_or(0)),
        groups(state.num_groups.value_or(0)),
        width(state.intermediate_size.value_or(0)) {}
  std::int64_t kernel;
  std::int64_t size;
  std::int64_t heads;
  std::int64_t head_dim;
  std::int64_t groups;
  std::int64_t width;
};

bool any_flag(const Geometry& geometry, std::initializer_list<std::string_view> fields,
              bool otherwise) {
  for (const std::string_view field : fields) {
    if (const auto stated = geometry.integer(field)) return *stated != 0;
  }
  return otherwise;
}

// Source: state-spaces/mamba, mamba_ssm/modules/mamba_simple.py
void append_mamba1(const Geometry& geometry, const State& state, Module& module) {
  const std::int64_t width = state.width;
  const std::int64_t default_rank = kernelpath::ceil_div(geometry.hidden, 16);
  const std::int64_t rank =
      geometry.integer_or("time_step_rank", geometry.integer_or("mamba_dt_rank", default_rank));
  const bool bias = any_flag(geometry, {"mamba_proj_bias", "use_bias"}, false);
  const bool conv_bias = any_flag(geometry, {"mamba_conv_bias", "use_conv_bias"}, true);
  module.heads("in_proj", width, 2, geometry.hidden, bias);
  module.channels("conv1d", width, 1, state.kernel, conv_bias);
  module.output("x_proj", Size(rank) + Size(2) * state.size, width, 1, false);
  module.heads("dt_proj", width, 1, rank, true);
  module.state_channels("A_log", width, 1, state.size);
  module.state_channels("D", width, 1, 1);
  module.output("out_proj", geometry.hidden, width, 1, bias);
  if (geometry.family.model_type == "jamba") {
    module.vector("dt_b_c_layernorm", Size(rank) + Size(2) * state.size);
  }
}

// Source: state-spaces/mamba, mamba_ssm/modules/mamba2.py
void append_mamba2(const Geometry& geometry, const State& state, Module& module) {
  const bool bias = any_flag(geometry, {"mamba_proj_bias", "use_bias"}, false);
  const bool conv_bias = any_flag(geometry, {"mamba_conv_bias", "use_conv_bias"}, true);
  const Size group = Size(2) * state.size;  // B and C
  module.heads("in_proj", state.heads, Size(2) * state.head_dim + Size(1), geometry.hidden, bias);
  module.heads("in_proj (B, C)", state.groups, group, geometry.hidden, bias);
  module.channels("conv1d", state.heads, state.head_dim, state.kernel, conv_bias);
  module.channels("conv1d (B, C)", state.groups, group, state.kernel, conv_bias);
  module.state_channels("A_log, D, dt_bias", state.heads, 3, 1);
  if (any_flag(geometry, {"mamba_rms_norm"}, true)) {
    module.vector("norm", Size(state.heads) * state.head_dim, state.heads);
  }
  module.output("out_proj", geometry.hidden, state.heads, state.head_dim, bias);
}

// Source: transformers 5.24.0, models/qwen3_5/modeling_qwen3_5.py (Qwen3_5GatedDeltaNet)
void append_gated_delta_net(const Geometry& geometry, const State& state, Module& module) {
  const Size keys = Size(2) * state.size;  // Q and K
  module.heads("in_proj_qkv", state.groups, keys, geometry.hidden, false);
  module.heads("in_proj_qkv", state.heads, state.head_dim, geometry.hidden, false);
  module.heads("in_proj_z", state.heads, state.head_dim, geometry.hidden, false);
  module.heads("in_proj_b", state.heads, 1, geometry.hidden, false);
  module.heads("in_proj_a", state.heads, 1, geometry.hidden, false);
  module.channels("conv1d", state.groups, keys, state.kernel);
  module.channels("conv1d", state.heads, state.head_dim, state.kernel);
  module.state_channels("A_log, dt_bias", state.heads, 2, 1);
  module.vector("norm", state.head_dim);
  module.output("out_proj", geometry.hidden, state.heads, state.head_dim, false);
}

// Source: transformers 5.24.0, models/lfm2/modeling_lfm2.py (Lfm2ShortConv)
void append_short_convolution(const Geometry& geometry, const State& state, Module& module) {
  const bool bias = any_flag(geometry, {"conv_bias"}, false);
  const std::int64_t width = state.width > 0 ? state.width : geometry.hidden;
  module.heads("in_proj", width, 3, geometry.hidden, bias);
  module.channels("conv", width, 1, state.kernel, bias);
  module.output("out_proj", geometry.hidden, width, 1, bias);
}

// Source: transformers 5.24.0, models/minimax/modeling_minimax.py (MiniMaxLightningAttention)
void append_lightning(const Geometry& geometry, const config::Layer& layer, Module& module) {
  const std::int64_t heads = layer.num_attention_heads;
  const Size head_dim = layer.head_dim;
  module.heads("qkv_proj", heads, Size(3) * head_dim, geometry.hidden, false);
  module.heads("output_gate", heads, head_dim, geometry.hidden, false);
  module.vector("norm", Size(heads) * head_dim, heads);
  module.output("out_proj", geometry.hidden, heads, head_dim, false);
}

// Source: moonshotai/Kimi-Linear, modeling_kimi.py (KimiDeltaAttention)
void append_kimi_delta(const Geometry& geometry, const State& state, Module& module) {
  const std::int64_t heads = state.heads;
  const Size head_dim = state.head_dim;
  for (const std::string_view name : {"q_proj", "k_proj", "v_proj"}) {
    module.heads(name, heads, head_dim, geometry.hidden, false);
  }
  module.channels("q_conv1d, k_conv1d, v_conv1d", heads, Size(3) * head_dim, state.kernel);
  module.replicated("f_a_proj", head_dim, geometry.hidden);
  module.heads("f_b_proj", heads, head_dim, head_dim, false);
  module.heads("b_proj", heads, 1, geometry.hidden, false);
  module.replicated("g_a_proj", head_dim, geometry.hidden);
  module.heads("g_b_proj", heads, head_dim, head_dim, false);
  module.state_channels("A_log, dt_bias", heads, head_dim + Size(1), 1);
  module.vector("o_norm", head_dim);
  module.output("o_proj", geometry.hidden, heads, head_dim, false);
}

}  // namespace

void append_state(const Geometry& geometry, const config::Layer& layer, std::vector<Tensor>& out) {
  Module module(Part::kState, geometry.family.state_module, out);
  if (geometry.family.state == StateKind::kLightning) {
    append_lightning(geometry, layer, module);
    return;
  }
  if (!geometry.model.linear_state) return;
  const State state(*geometry.model.linear_state);
  switch (geometry.family.state) {
    case StateKind::kMamba1:
      return append_mamba1(geometry, state, module);
    case StateKind::kMamba2:
      return append_mamba2(geometry, state, module);
    case StateKind::kGatedDeltaNet:
      return append_gated_delta_net(geometry, state, module);
    case StateKind::kShortConvolution:
      return append_short_convolution(geometry, state, module);
    case StateKind::kKimiDelta:
      return append_kimi_delta(geometry, state, module);
    case StateKind::kLightning:
    case StateKind::kUnknown:
      return;
  }
}

}  // namespace kernelpath::memory
