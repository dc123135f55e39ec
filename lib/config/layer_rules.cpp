// Kinds of layers by a period, a set of indices, or the family's own pattern.

#include "config/layer_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kernelpath::config {
namespace {

constexpr PlannedLayer kFullLayer = planned(LayerKind::kFull);

// Fields with the indices of some layers; the others are of the second kind.
struct IndexList {
  std::string_view name;
  PlannedLayer listed;
  PlannedLayer other;
  std::int64_t first;  // 1 where the field counts layers from 1
};

constexpr std::array<IndexList, 4> kIndexLists = {{
    // LFM2 before layer_types
    {"full_attn_idxs", kFullLayer, planned(LayerKind::kLinear, true), 0},
    // Bamba
    {"attn_layer_indices", kFullLayer, planned(LayerKind::kMamba, true), 0},
    // Zamba2: attention in front of the Mamba layer
    {"hybrid_layer_ids", planned(LayerKind::kFull, true), planned(LayerKind::kMamba, true), 0},
    // Kimi-Linear
    {"linear_attn_config/full_attn_layers", kFullLayer, planned(LayerKind::kLinear, true), 1},
}};

Result<LayerPlan> plan_from_indices(const Derivation& d, std::size_t count) {
  LayerPlan plan;
  for (const IndexList& list : kIndexLists) {
    const Found found = d.read.find_stated({list.name});
    KERNELPATH_TRY(indices, as_integers(d.read, found, {.min = 0}));
    if (indices.empty()) continue;
    plan.origin = found.origin;
    plan.layers.assign(count, list.other);
    for (const std::int64_t index : indices) {
      const std::int64_t place = index - list.first;
      if (place < 0 || place >= static_cast<std::int64_t>(count)) {
        return fail(Error{.code = ErrorCode::kConfigValue,
                          .message = fmt::format("no layer {} in a model of {}", index, count),
                          .where = found.origin.where,
                          .value = std::to_string(index)});
      }
      plan.layers[static_cast<std::size_t>(place)] = list.listed;
    }
    return plan;
  }
  return plan;
}

// Jamba: one attention layer every `period`, at `offset`.
Result<LayerPlan> plan_from_offset(const Derivation& d, std::size_t count) {
  LayerPlan plan;
  KERNELPATH_TRY(period, read_integer(d.read, {"attn_layer_period"}));
  if (!period) return plan;
  KERNELPATH_TRY(offset,
                 read_integer(d.read, {"attn_layer_offset"}, {.min = 0, .max = *period - 1}));
  plan.origin = period.origin;
  for (std::size_t index = 0; index < count; ++index) {
    const bool attention = static_cast<std::int64_t>(index) % *period == offset.value_or(0);
    plan.layers.push_back(attention ? kFullLayer : planned(LayerKind::kMamba, true));
  }
  return plan;
}

// Fields that say "every n-th layer attends to everything"; the others are of `other`.
struct Interval {
  std::string_view name;
  LayerKind other;
  bool first;  // layer 0 attends to everything, not layer n - 1
};
constexpr std::array<Interval, 4> kIntervals = {{
    {"full_attention_interval", LayerKind::kLinear, false},         // Qwen3-Next, Qwen3.5
    {"sliding_window_pattern", LayerKind::kSliding, false},         // Gemma 3, Cohere 2, EXAONE 4
    {"global_attn_every_n_layers", LayerKind::kSliding, true},      // ModernBERT
    {"dense_attention_every_n_layers", LayerKind::kSparse, false},  // Phi-3-small
}};

// EXAONE 4 may spell its period as letters: "LLLG".
Result<LayerPlan> plan_from_spelling(const Found& found, std::size_t count) {
  LayerPlan plan;
  const std::string& letters = found.value->as_string();
  const bool known = !letters.empty() && letters.find_first_not_of("LG") == std::string::npos;
  if (!known) {
    return fail(value_error(*found.value, found.origin.where,
                            "a number of layers or a period of L and G is needed"));
  }
  plan.origin = found.origin;
  for (std::size_t index = 0; index < count; ++index) {
    const bool global = letters[index % letters.size()] == 'G' || index + 1 == count;
    plan.layers.push_back(planned(global ? LayerKind::kFull : LayerKind::kSliding));
  }
  return plan;
}

Result<LayerPlan> plan_from_interval(const Derivation& d, std::size_t count) {
  LayerPlan plan;
  for (const Interval& interval : kIntervals) {
    const Found found = d.read.find_stated({interval.name});
    if (!found) continue;
    if (found.value->is_string()) return plan_from_spelling(found, count);
    KERNELPATH_TRY(period, as_integer(d.read, found, {.min = 0}));
    if (*period == 0) continue;
    const bool state = interval.other == LayerKind::kLinear;
    for (std::size_t index = 0; index < count; ++index) {
      const auto place = static_cast<std::int64_t>(interval.first ? index : index + 1);
      plan.layers.push_back(place % *period == 0 ? kFullLayer : planned(interval.other, state));
    }
    plan.origin = found.origin;
    return plan;
  }
  return plan;
}

// Llama 4: layers with RoPE attend in chunks, layers without RoPE to everything.
Result<LayerPlan> plan_from_chunks(const Derivation& d, std::size_t count) {
  LayerPlan plan;
  if (d.read.family == nullptr || !d.read.family->has_field("attention_chunk_size")) return plan;
  KERNELPATH_TRY(rotated, rotated_layers(d, count));
  plan.origin = {OriginKind::kDerived, {}, "layers with RoPE attend in chunks"};
  for (const bool rope : rotated) {
    plan.layers.push_back(planned(rope ? LayerKind::kChunked : LayerKind::kFull));
  }
  return plan;
}

LayerPlan plan_from_family(const Derivation& d, std::size_t count) {
  LayerPlan plan;
  if (d.read.family == nullptr || !d.read.family->has_pattern()) return plan;
  plan.origin = {OriginKind::kDefault, {}, d.read.family->rule()};
  for (std::size_t index = 0; index < count; ++index) {
    const std::string_view name = d.read.family->layer_name(index, count);
    const LayerName* known = find_layer_name(name);
    plan.layers.push_back(known == nullptr ? kFullLayer
                                           : planned(known->kind, known->has_state, known->moe));
  }
  return plan;
}

}  // namespace

Result<std::vector<bool>> rotated_layers(const Derivation& d, std::size_t count) {
  std::vector<bool> rotated;
  const Found list = d.read.find_stated({"no_rope_layers"});
  KERNELPATH_TRY(flags, as_integers(d.read, list, {.min = 0, .max = 1}));
  if (!flags.empty()) {
    if (flags.size() < count) {
      return fail(Error{.code = ErrorCode::kConfigValue,
                        .message = fmt::format("no_rope_layers has {} entries for {} layers",
                                               flags.size(), count),
                        .where = list.origin.where});
    }
    for (std::size_t index = 0; index < count; ++index) rotated.push_back(flags[index] != 0);
    return rotated;
  }
  KERNELPATH_TRY(interval, read_integer(d.read, {"no_rope_layer_interval", "nope_layer_interval"}));
  if (!interval) return rotated;
  for (std::size_t index = 0; index < count; ++index) {
    rotated.push_back((static_cast<std::int64_t>(index) + 1) % *interval != 0);
  }
  return rotated;
}

Result<LayerPlan> plan_from_rules(const Derivation& d, std::size_t count) {
  for (const auto& source :
       {plan_from_indices, plan_from_offset, plan_from_interval, plan_from_chunks}) {
    KERNELPATH_TRY(plan, source(d, count));
    if (!plan.layers.empty()) return plan;
  }
  return plan_from_family(d, count);
}

}  // namespace kernelpath::config
