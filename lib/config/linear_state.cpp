// Sizes of the state that recurrent, state-space and convolution layers keep; model_config.h says
// what each number means for each kind.

#include "base/checked.h"
#include "config/derive.h"

#include <algorithm>

namespace kernelpath::config {
namespace {

IntField product(const IntField& a, const IntField& b, std::string rule) {
  if (!a || !b) return {};
  const auto value = checked_mul(*a, *b);
  return value ? derived_integer(*value, std::move(rule)) : IntField{};
}

Result<void> read_head_dim(Derivation& d, LinearState& state) {
  const Found found = d.read.find({"mamba_head_dim", "mamba_d_head", "mamba_headdim",
                                   "linear_value_head_dim", "linear_attn_config/head_dim"});
  if (found && found.value->is_string() && found.value->as_string() == "auto") return {};
  KERNELPATH_TRY(head_dim, as_integer(d.read, found));
  state.head_dim = head_dim;
  return {};
}

// Inner width: stated, heads times head size, or a multiple of the model's.
Result<void> read_width(Derivation& d, LinearState& state) {
  KERNELPATH_TRY(stated, read_integer(d.read, {"mamba_d_ssm", "lru_width", "conv_dim"}));
  state.intermediate_size = stated;
  if (!stated) {
    state.intermediate_size = product(state.num_heads, state.head_dim, "num_heads * head_dim");
  }
  if (state.intermediate_size) return {};
  const Found found = d.read.find({"expand", "mamba_expand"});
  if (found) {
    KERNELPATH_TRY(factor, to_number(*found.value, found.origin.where));
    const double width = factor * static_cast<double>(d.out.hidden_size.value_or(0));
    if (width >= 1 && width < 1e15) {
      state.intermediate_size =
          derived_integer(static_cast<std::int64_t>(width), "expand * hidden_size");
    }
  } else if (state.conv_kernel) {
    state.intermediate_size = d.out.hidden_size;
    if (d.out.hidden_size) state.intermediate_size.origin = derived_origin("hidden_size");
  }
  return {};
}

// MiniMax's lightning attention has the geometry of the model's own attention.
void take_attention_geometry(const Derivation& d, LinearState& state) {
  state.num_heads = d.out.num_attention_heads;
  state.head_dim = d.out.head_dim;
  state.state_size = d.out.head_dim;
  state.intermediate_size = product(state.num_heads, state.head_dim, "num_heads * head_dim");
}

}  // namespace

Result<void> derive_linear_state(Derivation& d) {
  const bool needed = std::any_of(d.out.layers.begin(), d.out.layers.end(),
                                  [](const Layer& layer) { return layer.has_state; });
  if (!needed) return {};
  LinearState state;
  KERNELPATH_TRY(conv,
                 read_integer(d.read, {"conv_kernel", "mamba_d_conv", "linear_conv_kernel_dim",
                                       "linear_attn_config/short_conv_kernel_size", "conv_L_cache",
                                       "conv1d_width"}));
  state.conv_kernel = conv;
  KERNELPATH_TRY(size,
                 read_integer(d.read, {"ssm_state_size", "mamba_d_state", "state_size",
                                       "linear_key_head_dim", "linear_attn_config/head_dim"}));
  state.state_size = size;
  KERNELPATH_TRY(heads,
                 read_integer(d.read, {"mamba_num_heads", "mamba_n_heads", "n_mamba_heads",
                                       "linear_num_value_heads", "linear_attn_config/num_heads"}));
  state.num_heads = heads;
  KERNELPATH_CHECK_OK(read_head_dim(d, state));
  KERNELPATH_TRY(groups, read_integer(d.read, {"n_groups", "mamba_n_groups", "mamba_ngroups",
                                               "linear_num_key_heads"}));
  if (heads) state.num_groups = groups;
  // Mamba-2 as a model of its own uses the names of attention.
  if (!heads && d.read.family != nullptr && d.read.family->model_type() == "mamba2") {
    KERNELPATH_TRY(own_heads, read_integer(d.read, {"num_heads"}));
    KERNELPATH_TRY(own_size, read_integer(d.read, {"head_dim"}));
    state.num_heads = own_heads;
    state.head_dim = own_size;
    state.num_groups = groups;
  }
  KERNELPATH_CHECK_OK(read_width(d, state));
  if (!state.head_dim && state.num_heads && state.intermediate_size &&
      *state.intermediate_size % *state.num_heads == 0) {
    state.head_dim = derived_integer(*state.intermediate_size / *state.num_heads,
                                     "inner width / number of heads");
  }
  if (!state.conv_kernel && !state.state_size && !state.num_heads)
    take_attention_geometry(d, state);
  d.out.linear_state = std::move(state);
  return {};
}

}  // namespace kernelpath::config
