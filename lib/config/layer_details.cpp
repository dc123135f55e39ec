// What differs by layer: heads and their sizes, windows, RoPE, shared caches, per_layer_config.

#include "base/checked.h"
#include "config/layer_plan.h"
#include "json/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <set>

namespace kernelpath::config {
namespace {

bool has_heads(const Layer& layer) {
  return layer.kind != LayerKind::kNone && layer.kind != LayerKind::kMamba;
}

Layer base_layer(const Derivation& d) {
  Layer layer;
  layer.num_attention_heads = d.out.num_attention_heads.value_or(0);
  layer.num_key_value_heads = d.out.num_key_value_heads.value_or(layer.num_attention_heads);
  layer.head_dim = d.out.head_dim.value_or(0);
  layer.v_head_dim = layer.head_dim;
  if (d.out.mla && d.out.mla->qk_nope_head_dim && d.out.mla->qk_rope_head_dim) {
    layer.head_dim = *d.out.mla->qk_nope_head_dim + *d.out.mla->qk_rope_head_dim;
    layer.v_head_dim = d.out.mla->v_head_dim.value_or(layer.head_dim);
  }
  layer.rope = d.out.rope.type.value_or("") != "none";
  return layer;
}

std::optional<std::int64_t> window_of(const Derivation& d, const PlannedLayer& planned) {
  if (planned.kind == LayerKind::kChunked) return d.out.attention_chunk_size.value;
  if (planned.kind == LayerKind::kSliding || planned.windowed) return d.out.sliding_window.value;
  // DeepSeek-V4: compressed blocks and a window beside them
  if (planned.kind == LayerKind::kSparse && d.out.sparse) return d.out.sparse->window_size.value;
  return std::nullopt;
}

// Heads and sizes that one kind of layer has for itself.
struct KindGeometry {
  IntField heads;
  IntField kv_heads;
  IntField head_dim;
  IntField v_head_dim;
};

Result<KindGeometry> read_sliding_geometry(const Derivation& d) {
  KindGeometry own;
  KERNELPATH_TRY(heads, as_integer(d.read, d.read.find_stated({"swa_num_attention_heads"}),
                                   {.min = 1, .max = kMaxHeads}));
  own.heads = heads;
  KERNELPATH_TRY(kv, as_integer(d.read, d.read.find_stated({"swa_num_key_value_heads"}),
                                {.min = 1, .max = kMaxHeads}));
  own.kv_heads = kv;
  KERNELPATH_TRY(head_dim, as_integer(d.read, d.read.find_stated({"swa_head_dim"}),
                                      {.min = 1, .max = kMaxHeadDim}));
  own.head_dim = head_dim;
  KERNELPATH_TRY(value, as_integer(d.read, d.read.find_stated({"swa_v_head_dim"}),
                                   {.min = 1, .max = kMaxHeadDim}));
  own.v_head_dim = value;
  return own;
}

// Gemma 4: layers without a window have their own head size, and fewer KV heads where keys and
// values come from one projection. MiMo-V2: values are narrower than keys.
Result<KindGeometry> read_full_geometry(const Derivation& d) {
  KindGeometry own;
  KERNELPATH_TRY(head_dim,
                 read_integer(d.read, {"global_head_dim"}, {.min = 1, .max = kMaxHeadDim}));
  own.head_dim = head_dim;
  KERNELPATH_TRY(shared, read_boolean(d.read, {"attention_k_eq_v"}));
  if (shared.value_or(false)) {
    KERNELPATH_TRY(
        kv, read_integer(d.read, {"num_global_key_value_heads"}, {.min = 1, .max = kMaxHeads}));
    own.kv_heads = kv;
  }
  KERNELPATH_TRY(value, as_integer(d.read, d.read.find_stated({"v_head_dim"}),
                                   {.min = 0, .max = kMaxHeadDim}));
  if (!d.out.mla && value.value_or(0) > 0) own.v_head_dim = value;
  return own;
}

void apply_geometry(Layer& layer, const KindGeometry& own) {
  layer.num_attention_heads = own.heads.value_or(layer.num_attention_heads);
  layer.num_key_value_heads = own.kv_heads.value_or(layer.num_key_value_heads);
  if (own.head_dim) layer.v_head_dim = layer.head_dim = *own.head_dim;
  layer.v_head_dim = own.v_head_dim.value_or(layer.v_head_dim);
}

Result<void> check_layer_heads(const Layer& layer, const std::string& where) {
  if (!has_heads(layer) || layer.num_attention_heads == 0 || layer.num_key_value_heads == 0) {
    return {};
  }
  if (layer.num_attention_heads % layer.num_key_value_heads == 0) return {};
  return fail(Error{.code = ErrorCode::kConfigValue,
                    .message = fmt::format("{} attention heads are not a multiple of {} key/value "
                                           "heads",
                                           layer.num_attention_heads, layer.num_key_value_heads),
                    .where = where});
}

// A key of per_layer_config: the decimal index of a layer.
Result<std::size_t> layer_index(const json::Member& member, const std::string& where,
                                std::size_t count) {
  std::size_t index = 0;
  const char* end = member.key.data() + member.key.size();
  const auto [stop, error] = std::from_chars(member.key.data(), end, index);
  if (error != std::errc{} || stop != end || index >= count) {
    return fail(Error{.code = ErrorCode::kConfigValue,
                      .message = fmt::format("no such layer in a model of {} layers", count),
                      .where = where,
                      .value = member.key});
  }
  return index;
}

Result<void> override_layer(const Derivation& d, const json::Value& object,
                            const std::string& where, Layer& layer) {
  if (!object.is_object()) return fail(type_error(object, where, "an object"));
  const auto read = [&](std::string_view name, std::int64_t max, auto store) -> Result<void> {
    const json::Value* value = object.find_non_null(name);
    if (value == nullptr) return {};
    KERNELPATH_TRY(number, to_integer(*value, fmt::format("{}/{}", where, name),
                                      {.min = 1, .max = max}, d.read));
    store(number);
    return {};
  };
  constexpr std::int64_t kAny = IntRange{}.max;
  KERNELPATH_CHECK_OK(read("num_attention_heads", kMaxHeads,
                           [&](std::int64_t n) { layer.num_attention_heads = n; }));
  KERNELPATH_CHECK_OK(read("num_key_value_heads", kMaxHeads,
                           [&](std::int64_t n) { layer.num_key_value_heads = n; }));
  KERNELPATH_CHECK_OK(read("head_dim", kMaxHeadDim,
                           [&](std::int64_t n) { layer.v_head_dim = layer.head_dim = n; }));
  KERNELPATH_CHECK_OK(read("sliding_window", kAny, [&](std::int64_t n) {
    layer.kind = LayerKind::kSliding;
    layer.window = n;
  }));
  KERNELPATH_CHECK_OK(
      read("intermediate_size", kAny, [&](std::int64_t n) { layer.intermediate_size = n; }));
  return check_layer_heads(layer, where);
}

Result<void> apply_per_layer_config(Derivation& d) {
  const Found found = d.read.find_stated({"per_layer_config"});
  if (!found) return {};
  if (!found.value->is_object()) {
    return fail(type_error(*found.value, found.origin.where, "an object"));
  }
  std::set<std::size_t> seen;
  for (const json::Member& member : found.value->members()) {
    const std::string where =
        fmt::format("{}/{}", found.origin.where, json::pointer_token(member.key));
    KERNELPATH_TRY(index, layer_index(member, where, d.out.layers.size()));
    if (!seen.insert(index).second) {
      return fail(Error{.code = ErrorCode::kConfigValue,
                        .message = fmt::format("layer {} is given twice", index),
                        .where = where,
                        .value = member.key});
    }
    KERNELPATH_CHECK_OK(override_layer(d, member.value, where, d.out.layers[index]));
  }
  return {};
}

Result<void> apply_lists(Derivation& d) {
  auto& layers = d.out.layers;
  const auto& kv_list = d.out.num_key_value_heads_list;
  if (!kv_list.empty() && kv_list.size() != layers.size()) {
    return fail(
        Error{.code = ErrorCode::kConfigValue,
              .message = fmt::format("{} entries for {} layers", kv_list.size(), layers.size()),
              .where = d.out.num_key_value_heads.origin.where});
  }
  for (std::size_t index = 0; index < kv_list.size(); ++index) {
    layers[index].num_key_value_heads = kv_list[index];
    if (kv_list[index] == 0 && has_heads(layers[index])) layers[index].kind = LayerKind::kNone;
  }
  const Found widths = d.read.find_stated({"intermediate_size"});
  if (widths && widths.value->is_array()) {
    KERNELPATH_TRY(sizes, as_integers(d.read, widths, {.min = 0}));
    for (std::size_t index = 0; index < std::min(sizes.size(), layers.size()); ++index) {
      layers[index].intermediate_size = sizes[index];
    }
  }
  KERNELPATH_TRY(shared, read_integer(d.read, {"num_kv_shared_layers"}, {.min = 0}));
  const auto sharing = static_cast<std::size_t>(shared.value_or(0));
  for (std::size_t index = 0; index < layers.size(); ++index) {
    layers[index].shares_kv = index + sharing >= layers.size();
  }
  return {};
}

Result<void> apply_rotation(Derivation& d, const LayerPlan& plan) {
  KERNELPATH_TRY(rotated, rotated_layers(d, d.out.layers.size()));
  const bool window = d.out.sliding_window.value.has_value();
  const bool full_unrotated =
      d.read.family != nullptr && d.read.family->full_layers_without_rope(window);
  for (std::size_t index = 0; index < d.out.layers.size(); ++index) {
    Layer& layer = d.out.layers[index];
    if (!rotated.empty() && !rotated[index]) layer.rope = false;
    if (full_unrotated && plan.layers[index].kind == LayerKind::kFull) layer.rope = false;
    if (!has_heads(layer)) layer.rope = false;
  }
  return {};
}

// The model's number of KV heads, from its layers: the one that all share, or the mean's ceiling.
void summarise_kv_heads(Derivation& d) {
  std::int64_t total = 0;
  std::int64_t count = 0;
  bool uniform = true;
  std::optional<std::int64_t> first;
  for (const Layer& layer : d.out.layers) {
    if (!has_heads(layer) || layer.num_key_value_heads == 0) continue;
    if (!first) first = layer.num_key_value_heads;
    uniform = uniform && *first == layer.num_key_value_heads;
    total += layer.num_key_value_heads;
    ++count;
  }
  IntField& kv_heads = d.out.num_key_value_heads;
  if (!first || (uniform && kv_heads.value == first)) return;
  // A partial description without KV heads stays without them.
  if (d.partial && !kv_heads && d.out.num_key_value_heads_list.empty()) return;
  kv_heads.value = uniform ? *first : ceil_div(total, count);
  kv_heads.origin.kind = OriginKind::kDerived;
  kv_heads.origin.rule = uniform ? "same in every layer" : "mean over the layers, rounded up";
}

}  // namespace

Result<void> fill_layer_details(Derivation& d, const LayerPlan& plan) {
  KERNELPATH_TRY(sliding, read_sliding_geometry(d));
  KERNELPATH_TRY(full, read_full_geometry(d));
  KERNELPATH_TRY(experts, expert_layers(d, plan));
  KERNELPATH_TRY(dense_width,
                 read_integer(d.read, {"intermediate_size_mlp", "dense_intermediate_size"}));
  const Layer base = base_layer(d);
  d.out.layers.reserve(plan.layers.size());
  bool own_kv_heads = false;
  for (std::size_t index = 0; index < plan.layers.size(); ++index) {
    const PlannedLayer& planned = plan.layers[index];
    Layer layer = base;
    layer.kind = planned.kind;
    layer.has_state = planned.has_state;
    layer.moe = experts[index];
    layer.window = window_of(d, planned);
    layer.intermediate_size = planned.intermediate_size;
    if (dense_width && !layer.moe && !planned.moe) layer.intermediate_size = dense_width.value;
    if (planned.kind == LayerKind::kSliding) apply_geometry(layer, sliding);
    if (planned.kind == LayerKind::kFull) apply_geometry(layer, full);
    if (planned.kv_heads) layer.num_key_value_heads = *planned.kv_heads;
    own_kv_heads = own_kv_heads || planned.kv_heads;
    KERNELPATH_CHECK_OK(
        check_layer_heads(layer, fmt::format("{}/num_key_value_heads", d.read.text_pointer)));
    d.out.layers.push_back(layer);
  }
  if (own_kv_heads) {  // block_configs
    for (const Layer& layer : d.out.layers) {
      d.out.num_key_value_heads_list.push_back(has_heads(layer) ? layer.num_key_value_heads : 0);
    }
    d.out.num_key_value_heads.origin = plan.origin;
  }
  KERNELPATH_CHECK_OK(apply_lists(d));
  KERNELPATH_CHECK_OK(apply_rotation(d, plan));
  KERNELPATH_CHECK_OK(apply_per_layer_config(d));
  summarise_kv_heads(d);
  return {};
}

}  // namespace kernelpath::config
