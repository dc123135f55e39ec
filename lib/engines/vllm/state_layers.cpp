#include "engines/vllm/layer_plan.h"

#include <array>

namespace kernelpath::engines::vllm {
namespace {

struct StateClass {
  std::string_view kind;
  std::string_view backend;  // class name
};

constexpr auto kStateClasses = std::to_array<StateClass>({
    {"mamba1", "Mamba1AttentionBackend"},
    {"mamba2", "Mamba2AttentionBackend"},
    {"short_conv", "ShortConvAttentionBackend"},
    {"gdn", "GDNAttentionBackend"},
});

// The engine's type names for states: "auto" is the model's.
std::string state_dtype(const RunState& state, const std::string& asked,
                        const std::string& otherwise) {
  if (asked != "auto") return asked;
  return otherwise.empty() ? state.run().dtype : otherwise;
}

// Channels of the inner projection, by the class's own formula.
std::int64_t inner_width(const RunState& state, const config::LinearState& sizes) {
  const config::ModelConfig& model = state.question.model;
  const std::string& type = state.view().model_type;
  const std::int64_t hidden = model.hidden_size.value_or(0);
  if (type == "mamba2") {
    return text_integer(model, "intermediate_size")
        .value_or(text_integer(model, "expand").value_or(2) * hidden);
  }
  const auto expand = text_integer(model, "mamba_expand");
  const bool expands = type == "zamba2" || type.starts_with("granitemoe");
  if (expands && expand) return *expand * hidden;
  return sizes.intermediate_size.value_or(0);
}

// Multiples at which FlashInfer's prefill of gated delta nets keeps checkpoints (since 0.33).
constexpr std::int64_t kCheckpointTokens = 64;
constexpr std::int64_t kBlackwellKeyHead = 128;

std::optional<std::int64_t> checkpoint_alignment(const RunState& state, std::int64_t key_head) {
  const Machine& machine = state.question.machine;
  if (!state.profile().at_least(0, 33) || !machine.packages.flashinfer_usable()) {
    return std::nullopt;
  }
  const bool newer = machine.family(10) || machine.family(12);
  const bool used = machine.family(9) || (newer && key_head == kBlackwellKeyHead);
  return used ? std::optional(kCheckpointTokens) : std::nullopt;
}

// A group serves several heads, so that a rank may need a copy of one.
std::int64_t sharded_groups(std::int64_t groups, std::int64_t tp) {
  return groups % tp == 0 ? groups : tp;
}

}  // namespace

bool fill_state(const RunState& state, std::string_view kind, BuiltLayer& layer) {
  const auto& sizes = state.question.model.linear_state;
  if (!sizes || !sizes->conv_kernel) return false;
  const std::int64_t tp = state.run().tp;
  const std::int64_t taps = *sizes->conv_kernel - 1;
  const std::int64_t drafted = taps + state.run().speculative_tokens;
  const std::int64_t width = inner_width(state, *sizes);
  const std::int64_t heads = sizes->num_heads.value_or(0);
  const std::int64_t head = sizes->head_dim.value_or(0);
  const std::int64_t groups = sizes->num_groups.value_or(1);
  const std::int64_t size = sizes->state_size.value_or(0);
  if (kind == "mamba1") {
    layer.state_shapes = {{taps, width / tp}, {width / tp, size}};
  } else if (kind == "mamba2") {
    const std::int64_t channels = width + 2 * sharded_groups(groups, tp) * size;
    layer.state_shapes = {{drafted, channels / tp}, {heads / tp, head, size}};
  } else if (kind == "short_conv") {
    const bool later = state.profile().at_least(0, 33);
    layer.state_shapes = {{later ? drafted : taps, width / tp}};
  } else if (kind == "gdn") {
    const std::int64_t channels = 2 * groups * size + heads * head;
    layer.state_shapes = {{drafted, channels / tp}, {heads / tp, head, size}};
    layer.checkpoint_alignment = checkpoint_alignment(state, size);
  } else {
    return false;
  }
  const std::string conv = state_dtype(state, state.flags().mamba_cache_dtype, "");
  layer.state_dtypes = {conv};
  if (layer.state_shapes.size() > 1) {
    layer.state_dtypes.push_back(state_dtype(state, state.run().mamba_ssm_cache_dtype, conv));
  }
  layer.state_kind = kind;
  layer.role = LayerRole::kState;
  for (const StateClass& known : kStateClasses) {
    if (known.kind != kind) continue;
    layer.backend = state.profile().find_layer_class(known.backend);
    layer.class_name = known.backend;
    layer.reported_backend = layer.backend != nullptr ? layer.backend->reported_name : "";
  }
  return true;
}

}  // namespace kernelpath::engines::vllm
