#include "memory/state.h"

#include "memory/size.h"

#include <algorithm>

namespace kernelpath::memory {
namespace {

using config::Layer;

bool keeps_state(const Layer& layer) { return layer.has_state; }

// Elements of one layer's state on one rank.
struct Elements {
  Size conv = 0;
  Size state = 0;
};

// `groups` of Q and K (B and C) pass the convolution besides the heads.
Elements elements_of(const config::LinearState& state, std::int64_t all_groups, std::int64_t tp) {
  const Size window = std::max<std::int64_t>(state.conv_kernel.value_or(1), 1) - 1;
  const Size size = state.state_size.value_or(0);
  if (state.num_heads && state.head_dim) {
    const Size heads = ceil_div(Size(*state.num_heads), tp);
    const Size groups = ceil_div(Size(all_groups), tp);
    const Size channels = heads * *state.head_dim + Size(2) * groups * size;
    return {.conv = window * channels, .state = heads * *state.head_dim * size};
  }
  const Size width = ceil_div(Size(state.intermediate_size.value_or(0)), tp);
  return {.conv = window * width, .state = width * size};
}

// Kimi's delta attention has as many Q and K heads as V heads, and states one number.
std::int64_t groups_of(const config::ModelConfig& model) {
  const config::LinearState& state = *model.linear_state;
  if (state.num_groups) return *state.num_groups;
  return model.model_type.value_or("") == "kimi_linear" ? state.num_heads.value_or(0) : 0;
}

// Without sizes of its own, a linear layer keeps a square state for each of its heads.
Elements square_elements(const Layer& layer, std::int64_t tp) {
  const Size heads = ceil_div(Size(layer.num_attention_heads), tp);
  return {.state = heads * layer.head_dim * layer.head_dim};
}

}  // namespace

Result<StateBytes> state_bytes(const config::ModelConfig& model, const StateOptions& options) {
  if (options.tp < 1) {
    return fail(Error{.code = ErrorCode::kUsage, .message = "a parallel size must be 1 or more"});
  }
  StateBytes out;
  out.layers = std::count_if(model.layers.begin(), model.layers.end(), keeps_state);
  if (out.layers == 0) return out;
  const Layer& layer = *std::find_if(model.layers.begin(), model.layers.end(), keeps_state);
  const Elements elements = model.linear_state
                                ? elements_of(*model.linear_state, groups_of(model), options.tp)
                                : square_elements(layer, options.tp);
  const Size conv = elements.conv * options.conv_element_bytes;
  const Size state = elements.state * options.state_element_bytes;
  const Size total = (conv + state) * out.layers;
  if (!total.fits()) {
    return fail(Error{.code = ErrorCode::kConfigOverflow,
                      .message = "the recurrent state of a sequence does not fit 64 bits; factors: "
                                 "layers, heads, head size and state size"});
  }
  out.conv_bytes = conv.value();
  out.state_bytes = state.value();
  out.bytes_per_sequence = total.value();
  return out;
}

}  // namespace kernelpath::memory
