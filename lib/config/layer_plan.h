#pragma once

#include "base/result.h"
#include "config/derive.h"

#include <optional>
#include <string_view>
#include <vector>

namespace kernelpath::config {

// What one layer is, before widths and heads are known.
struct PlannedLayer {
  LayerKind kind = LayerKind::kFull;
  bool has_state = false;
  std::optional<bool> moe;               // where the same list says so
  std::optional<std::int64_t> kv_heads;  // where the same list says so
  std::optional<std::int64_t> intermediate_size;
  bool windowed = false;  // a layer of an encoder with a window
};

constexpr PlannedLayer planned(LayerKind kind, bool has_state = false,
                               std::optional<bool> moe = std::nullopt) {
  return {kind, has_state, moe, std::nullopt, std::nullopt, false};
}

struct LayerPlan {
  std::vector<PlannedLayer> layers;  // empty: this source says nothing
  Origin origin;
  bool replaces_count = false;  // its length counts, whatever num_hidden_layers says
};

// What a layer's name in a list means. Null pointer if no engine knows the name.
struct LayerName {
  std::string_view name;
  LayerKind kind;
  bool has_state;
  std::optional<bool> moe;
};
const LayerName* find_layer_name(std::string_view name);

// The kinds by a list that the file states: block_configs, hybrid_override_pattern, layer_types …
// Errors: a list of the wrong length, an unknown name or letter.
Result<LayerPlan> plan_from_lists(const Derivation& d);

// The kinds by a period or another rule: attn_layer_period, full_attention_interval, the family's
// pattern. Gives nothing for ordinary models.
Result<LayerPlan> plan_from_rules(const Derivation& d, std::size_t count);

// Which layers have RoPE in families that leave it out of some (Llama 4, SmolLM3); empty elsewhere.
Result<std::vector<bool>> rotated_layers(const Derivation& d, std::size_t count);

// Reads the sliding window and gives it to the layers that have one. `plan` may be empty: then the
// window's own fields say which layers slide, and the plan is made from them.
Result<void> apply_window(Derivation& d, LayerPlan& plan, std::size_t count);
// The same for attention in chunks.
Result<void> apply_chunks(Derivation& d, LayerPlan& plan);

// Fills what differs by layer: heads, sizes, RoPE, experts, per_layer_config.
Result<void> fill_layer_details(Derivation& d, const LayerPlan& plan);
// True for each layer with experts.
Result<std::vector<bool>> expert_layers(const Derivation& d, const LayerPlan& plan);

}  // namespace kernelpath::config
