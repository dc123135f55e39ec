// Kinds of layers by a list that the file states, one entry a layer.

#include "base/rounding.h"
#include "base/text.h"
#include "config/layer_plan.h"

#include <fmt/format.h>

#include <array>

namespace kernelpath::config {
namespace {

// Lists of names, newest first; each has one entry a layer.
constexpr std::array<std::string_view, 3> kNameLists = {"layer_types", "layers_block_type",
                                                        "attention_layers"};

Error unknown_layer(const json::Value& item, const std::string& where) {
  return value_error(item, where, "unknown kind of layer",
                     "known: full_attention, sliding_attention, chunked_attention, "
                     "linear_attention, mamba, conv, hybrid, moe, …");
}

Result<LayerPlan> plan_from_names(const Derivation& d) {
  LayerPlan plan;
  for (const std::string_view list : kNameLists) {
    const Found found = d.read.find_stated({list});
    if (!found) continue;
    if (!found.value->is_array()) {
      return fail(type_error(*found.value, found.origin.where, "a list of names"));
    }
    plan.origin = found.origin;
    plan.layers.reserve(found.value->items().size());
    for (const json::Value& item : found.value->items()) {
      const std::string where = fmt::format("{}/{}", found.origin.where, plan.layers.size());
      KERNELPATH_TRY(name, to_name(item, where));
      const LayerName* known = find_layer_name(name);
      if (known == nullptr) return fail(unknown_layer(item, where));
      plan.layers.push_back(planned(known->kind, known->has_state, known->moe));
    }
    // Nemotron-H takes the list's length and ignores the number.
    plan.replaces_count = list == "layers_block_type";
    if (!plan.layers.empty()) break;
  }
  return plan;
}

// RecurrentGemma: a short list, repeated over the layers. Its attention always has a window.
Result<LayerPlan> plan_from_repeated_names(const Derivation& d) {
  LayerPlan plan;
  const Found found = d.read.find_stated({"block_types"});
  if (!found || !found.value->is_array() || found.value->items().empty()) return plan;
  const auto names = found.value->items();
  const auto count = static_cast<std::size_t>(d.out.num_hidden_layers.value_or(0));
  for (std::size_t index = 0; index < count; ++index) {
    const std::size_t place = index % names.size();
    const std::string where = fmt::format("{}/{}", found.origin.where, place);
    KERNELPATH_TRY(name, to_name(names[place], where));
    const LayerName* known = find_layer_name(name);
    if (known == nullptr) return fail(unknown_layer(names[place], where));
    const LayerKind kind = known->kind == LayerKind::kFull ? LayerKind::kSliding : known->kind;
    plan.layers.push_back(planned(kind, known->has_state, known->moe));
  }
  plan.origin = found.origin;
  plan.origin.rule = "repeated over the layers";
  return plan;
}

// Nemotron-H: one letter a layer.
Result<LayerPlan> plan_from_letters(const Derivation& d) {
  LayerPlan plan;
  const Found found = d.read.find_stated({"hybrid_override_pattern"});
  if (!found) return plan;
  if (!found.value->is_string()) {
    return fail(type_error(*found.value, found.origin.where, "a string of letters"));
  }
  plan.origin = found.origin;
  plan.replaces_count = true;
  for (const char letter : found.value->as_string()) {
    switch (letter) {
      case 'M':
        plan.layers.push_back(planned(LayerKind::kMamba, true, false));
        break;
      case '*':
        plan.layers.push_back(planned(LayerKind::kFull, false, false));
        break;
      case 'E':
        plan.layers.push_back(planned(LayerKind::kNone, false, true));
        break;
      case '-':
        plan.layers.push_back(planned(LayerKind::kNone, false, false));
        break;
      default:
        return fail(Error{.code = ErrorCode::kConfigValue,
                          .message = fmt::format("unknown letter at place {}; known are M, E, * "
                                                 "and -",
                                                 plan.layers.size()),
                          .where = found.origin.where,
                          .value = escape_for_terminal(std::string(1, letter))});
    }
  }
  return plan;
}

// DeciLM / Nemotron-NAS: a feed-forward width as a multiple of the model's, rounded up to 256.
Result<std::optional<std::int64_t>> block_width(const Derivation& d, const json::Value& block,
                                                const std::string& where) {
  const json::Value* ffn = block.find_non_null("ffn");
  if (ffn == nullptr || !d.out.hidden_size) return std::optional<std::int64_t>{};
  const json::Value* none = ffn->find_non_null("no_op");
  if (none != nullptr && none->is_bool() && none->as_bool()) return std::optional<std::int64_t>{0};
  const json::Value* factor = ffn->find_non_null("ffn_mult");
  if (factor == nullptr) return std::optional<std::int64_t>{};
  KERNELPATH_TRY(multiple, to_number(*factor, where + "/ffn/ffn_mult"));
  const double width = 2 * multiple * static_cast<double>(*d.out.hidden_size) / 3;
  constexpr double kLargest = 1e15;  // far beyond any model, and exact in a double
  if (width > kLargest) {
    return fail(value_error(*factor, where + "/ffn/ffn_mult", "the layer would be too wide"));
  }
  return std::optional<std::int64_t>{round_up(static_cast<std::int64_t>(width), 256)};
}

// DeciLM / Nemotron-NAS: attention may be absent or have its own group size.
Result<PlannedLayer> plan_block(const Derivation& d, const json::Value& block,
                                const std::string& where) {
  PlannedLayer layer;
  KERNELPATH_TRY(width, block_width(d, block, where));
  layer.intermediate_size = width;
  const json::Value* attention = block.find_non_null("attention");
  if (attention == nullptr) return layer;
  const auto is_set = [&](std::string_view name) {
    const json::Value* flag = attention->find_non_null(name);
    return flag != nullptr && flag->is_bool() && flag->as_bool();
  };
  if (is_set("no_op") || is_set("replace_with_linear")) {
    layer.kind = LayerKind::kNone;
    return layer;
  }
  const json::Value* group = attention->find_non_null("n_heads_in_group");
  if (group == nullptr) return layer;
  const std::string group_where = where + "/attention/n_heads_in_group";
  KERNELPATH_TRY(heads_in_group, to_integer(*group, group_where, {}, d.read));
  if (!d.out.num_attention_heads) return layer;
  const std::int64_t heads = *d.out.num_attention_heads;
  if (heads_in_group > heads || heads % heads_in_group != 0) {
    return fail(value_error(*group, group_where,
                            fmt::format("does not divide num_attention_heads {}", heads)));
  }
  layer.kv_heads = heads / heads_in_group;
  return layer;
}

Result<LayerPlan> plan_from_blocks(const Derivation& d) {
  LayerPlan plan;
  const Found found = d.read.find_stated({"block_configs"});
  if (!found) return plan;
  if (!found.value->is_array()) {
    return fail(type_error(*found.value, found.origin.where, "a list of objects"));
  }
  plan.origin = found.origin;
  for (const json::Value& block : found.value->items()) {
    KERNELPATH_TRY(
        layer, plan_block(d, block, fmt::format("{}/{}", found.origin.where, plan.layers.size())));
    plan.layers.push_back(layer);
  }
  return plan;
}

// Lists of numbers: what 0 and what any other number stands for.
struct NumberList {
  std::string_view name;
  PlannedLayer zero;
  PlannedLayer other;
};

constexpr std::array<NumberList, 3> kNumberLists = {{
    // MiniMax-Text-01 and M2: lightning attention or softmax attention
    {"attn_type_list", planned(LayerKind::kLinear, true), planned(LayerKind::kFull)},
    // MiMo-V2
    {"hybrid_layer_pattern", planned(LayerKind::kFull), planned(LayerKind::kSliding)},
    // MiniMax-M3
    {"sparse_attention_config/sparse_attention_freq", planned(LayerKind::kFull),
     planned(LayerKind::kSparse)},
}};

Result<LayerPlan> plan_from_numbers(const Derivation& d) {
  LayerPlan plan;
  for (const NumberList& list : kNumberLists) {
    const Found found = d.read.find_stated({list.name});
    KERNELPATH_TRY(numbers, as_integers(d.read, found, {.min = 0}));
    if (numbers.empty()) continue;
    plan.origin = found.origin;
    for (const std::int64_t number : numbers) {
      plan.layers.push_back(number == 0 ? list.zero : list.other);
    }
    return plan;
  }
  return plan;
}

// DeepSeek-V4: 0 is a layer with a window alone; others see the window and compressed blocks.
LayerPlan plan_from_ratios(const Derivation& d) {
  LayerPlan plan;
  if (!d.out.sparse || d.out.sparse->compress_ratios.empty()) return plan;
  plan.origin = d.out.sparse->compress_ratios_origin;
  const auto count = static_cast<std::size_t>(d.out.num_hidden_layers.value_or(0));
  for (const std::int64_t ratio : d.out.sparse->compress_ratios) {
    if (plan.layers.size() == count) break;  // what follows are MTP layers
    plan.layers.push_back(planned(ratio == 0 ? LayerKind::kSliding : LayerKind::kSparse));
  }
  return plan;
}

}  // namespace

Result<LayerPlan> plan_from_lists(const Derivation& d) {
  for (const auto& source : {plan_from_blocks, plan_from_letters, plan_from_names,
                             plan_from_repeated_names, plan_from_numbers}) {
    KERNELPATH_TRY(plan, source(d));
    if (!plan.layers.empty()) return plan;
  }
  return plan_from_ratios(d);
}

IntField layers_from_lists(const FieldReader& read) {
  for (const std::string_view name : {"layer_types", "layers_block_type", "block_configs",
                                      "hybrid_override_pattern", "attn_type_list"}) {
    const Found found = read.find_stated({name});
    if (!found) continue;
    const std::size_t length = found.value->is_array()    ? found.value->items().size()
                               : found.value->is_string() ? found.value->as_string().size()
                                                          : 0;
    if (length == 0) continue;
    Origin origin = found.origin;
    origin.kind = OriginKind::kDerived;
    origin.rule = fmt::format("length of {}", name);
    return {static_cast<std::int64_t>(length), std::move(origin)};
  }
  return {};
}

}  // namespace kernelpath::config
