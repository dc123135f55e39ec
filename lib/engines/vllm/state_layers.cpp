#include "engines/vllm/layer_plan.h"

#include <array>

namespace kernelpath::engines::vllm {
namespace {

struct StateClass {
  std::string_view kind;
  std::string_view backend;  // class name
  int since = 0;             // minor release
};

constexpr auto kStateClasses = std::to_array<StateClass>({
    {"mamba1", "Mamba1AttentionBackend"},
    {"mamba2", "Mamba2AttentionBackend"},
    {"short_conv", "ShortConvAttentionBackend"},
    {"gdn", "GDNAttentionBackend"},
    {"kda", "GDNAttentionBackend"},
    {"kda", "KimiK3KDAAttentionBackend", 33},
    {"linear", "LinearAttentionBackend"},
    {"bailing_linear", "BailingLinearAttentionBackend"},
    {"plamo2", "Mamba2AttentionBackend"},
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

using Shapes = std::vector<std::vector<std::int64_t>>;

// Linear attention without a convolution: one matrix a head.
Shapes linear_shapes(const RunState& state) {
  const std::int64_t heads = state.view().total_heads;
  const std::int64_t head = text_integer(state.question.model, "head_dim")
                                .value_or(heads == 0 ? 0 : state.view().hidden_size / heads);
  return {{heads / state.run().tp, head, head}};
}

// As Mamba 2 without groups.
Shapes plamo2_shapes(const RunState& state) {
  const config::ModelConfig& model = state.question.model;
  const auto heads = text_integer(model, "mamba_num_heads");
  const auto head = text_integer(model, "hidden_size_per_head");
  const auto size = text_integer(model, "mamba_d_state");
  const auto taps = text_integer(model, "mamba_d_conv");
  if (!heads || !head || !size || !taps) return {};
  const std::int64_t tp = state.run().tp;
  return {{*taps - 1, *heads * *head / tp}, {*heads / tp, *head, *size}};
}

// Empty for a kind that has no formula here, or numbers that the configuration lacks.
Shapes shapes_of(const RunState& state, std::string_view kind) {
  if (kind.ends_with("linear")) return linear_shapes(state);
  if (kind == "plamo2") return plamo2_shapes(state);
  const auto& sizes = state.question.model.linear_state;
  if (!sizes || !sizes->conv_kernel) return {};
  const bool later = state.profile().at_least(0, 33);
  const std::int64_t tp = state.run().tp;
  const std::int64_t taps = *sizes->conv_kernel - 1;
  const std::int64_t drafted = taps + state.run().speculative_tokens;
  const std::int64_t width = inner_width(state, *sizes);
  const std::int64_t heads = sizes->num_heads.value_or(0);
  const std::int64_t head = sizes->head_dim.value_or(0);
  const std::int64_t groups = sizes->num_groups.value_or(1);
  const std::int64_t size = sizes->state_size.value_or(0);
  if (kind == "mamba1") return {{taps, width / tp}, {width / tp, size}};
  if (kind == "short_conv") return {{later ? drafted : taps, width / tp}};
  if (kind == "kda") {
    return {{later ? drafted : taps, 3 * heads * head / tp}, {heads / tp, head, head}};
  }
  const std::int64_t channels = kind == "mamba2" ? width + 2 * sharded_groups(groups, tp) * size
                                                 : 2 * groups * size + heads * head;
  return {{drafted, channels / tp}, {heads / tp, head, size}};
}

void set_backend(const RunState& state, std::string_view kind, BuiltLayer& layer) {
  for (const StateClass& known : kStateClasses) {
    if (known.kind != kind || state.profile().release.minor < known.since) continue;
    layer.class_name = known.backend;
    layer.backend = state.profile().find_layer_class(known.backend);
    layer.reported_backend = layer.backend != nullptr ? layer.backend->reported_name : "";
  }
}

}  // namespace

bool fill_state(const RunState& state, std::string_view kind, BuiltLayer& layer) {
  layer.state_shapes = shapes_of(state, kind);
  if (layer.state_shapes.empty()) return false;
  const std::string conv = state_dtype(state, state.flags().mamba_cache_dtype, "");
  layer.state_dtypes = {conv};
  if (layer.state_shapes.size() > 1) {
    const bool exact = kind == "kda";  // its recurrent state is kept in float32
    layer.state_dtypes.push_back(state_dtype(
        state,
        exact && !state.profile().at_least(0, 33) ? "auto" : state.run().mamba_ssm_cache_dtype,
        exact ? "float32" : conv));
  }
  if (kind == "gdn") {
    layer.checkpoint_alignment = checkpoint_alignment(state, layer.state_shapes[1][2]);
  }
  layer.state_kind = kind == "plamo2" ? "mamba2" : kind;
  layer.role = LayerRole::kState;
  set_backend(state, kind, layer);
  return true;
}

}  // namespace kernelpath::engines::vllm
