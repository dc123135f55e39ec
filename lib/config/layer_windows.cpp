// Sliding windows and chunks: how wide, and which layers have one.

#include "config/layer_plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace kernelpath::config {
namespace {

struct Window {
  IntField width;
  std::vector<bool> mask;  // of a list with one entry a layer (or a period): true has the window
};

bool has(const Family* family, std::string_view field) {
  return family != nullptr && family->has_field(field);
}

// Does this family's class read a window at all? Of an unknown family it is believed.
bool family_has_window(const Derivation& d) {
  const Family* family = d.read.family;
  return family == nullptr || family->has_field("sliding_window") ||
         !family->alias("sliding_window").empty() || family->has_field("window_size") ||
         family->has_field("local_attention");
}

Found find_window(const Derivation& d) {
  const Family* family = d.read.family;
  // These two names mean other things in other families.
  const std::string_view total = has(family, "local_attention") ? "local_attention" : "";
  const std::string_view size = has(family, "window_size") ? "window_size" : "";
  const std::string_view alias =
      family != nullptr ? family->alias("sliding_window") : std::string_view();
  return d.read.find({"sliding_window", alias, "sliding_window_size", total, size});
}

Result<Window> read_window_list(const Derivation& d, const Found& found) {
  Window window;
  for (const json::Value& item : found.value->items()) {
    window.mask.push_back(!item.is_null());
    if (item.is_null()) continue;
    const std::string where = fmt::format("{}/{}", found.origin.where, window.mask.size() - 1);
    KERNELPATH_TRY(width, to_integer(item, where, {}, d.read));
    if (window.width && *window.width != width) {
      return fail(value_error(item, where,
                              fmt::format("two widths of sliding window, {} and {}; one is "
                                          "supported",
                                          *window.width, width)));
    }
    window.width = {width, found.origin};
  }
  return window;
}

Result<Window> read_window(const Derivation& d) {
  const Found found = find_window(d);
  if (found && found.value->is_array()) return read_window_list(d, found);
  KERNELPATH_TRY(use, read_boolean(d.read, {"use_sliding_window"}));
  const bool off = use && !*use;
  // A file that switches the window off may hold any number of tokens, also 0.
  KERNELPATH_TRY(width, as_integer(d.read, found, {.min = off ? 0 : 1}));
  if (!off || !width) return Window{width, {}};
  Origin origin = use.origin;
  origin.kind = OriginKind::kAbsent;
  origin.rule = fmt::format("use_sliding_window is false: the window of {} is not used", *width);
  return Window{{std::nullopt, std::move(origin)}, {}};
}

// Qwen2 and its kin: layers from max_window_layers on have the window.
Result<void> plan_upper_layers(Derivation& d, const IntField& first, LayerPlan& plan,
                               std::size_t count) {
  if (*first > static_cast<std::int64_t>(count)) {
    d.read.warn("CONFIG-WINDOW-LAYERS",
                first.origin.where.empty() ? d.read.text_pointer + "/max_window_layers"
                                           : first.origin.where,
                fmt::format("max_window_layers {} is more than the {} layers: no layer has the "
                            "sliding window",
                            *first, count));
  }
  plan.origin = first.origin;
  plan.layers.resize(count);
  for (std::size_t index = 0; index < count; ++index) {
    if (static_cast<std::int64_t>(index) >= *first) plan.layers[index].kind = LayerKind::kSliding;
  }
  return {};
}

// No list and no pattern says which layers slide.
Result<void> plan_by_window(Derivation& d, const Window& window, LayerPlan& plan,
                            std::size_t count) {
  if (!window.mask.empty()) {
    plan.origin = window.width.origin;
    plan.layers.resize(count);
    for (std::size_t index = 0; index < count; ++index) {
      const bool slides = window.mask[index % window.mask.size()];
      if (slides) plan.layers[index].kind = LayerKind::kSliding;
    }
    return {};
  }
  KERNELPATH_TRY(first, read_integer(d.read, {"max_window_layers"}, {.min = 0}));
  if (first && (d.read.family == nullptr || d.read.family->has_field("max_window_layers"))) {
    return plan_upper_layers(d, first, plan, count);
  }
  KERNELPATH_TRY(rotated, rotated_layers(d, count));
  plan.origin = window.width.origin;
  plan.layers.resize(count);
  for (std::size_t index = 0; index < count; ++index) {
    // SmolLM3: only layers without RoPE slide.
    const bool slides = rotated.empty() || !rotated[index];
    if (slides) plan.layers[index].kind = LayerKind::kSliding;
  }
  return {};
}

void ignore_window(Derivation& d) {
  IntField& window = d.out.sliding_window;
  d.read.warn("CONFIG-WINDOW-UNUSED", window.origin.where,
              fmt::format("models of type {} read no sliding window; {} has no effect",
                          d.read.family->model_type(), *window));
  window.origin.kind = OriginKind::kAbsent;
  window.origin.rule = fmt::format("not read by {}", d.read.family->model_type());
  window.value.reset();
}

bool any_sliding(const LayerPlan& plan) {
  return std::any_of(plan.layers.begin(), plan.layers.end(),
                     [](const PlannedLayer& layer) { return layer.kind == LayerKind::kSliding; });
}

// A plan with sliding layers in a model without a window.
void drop_window(Derivation& d, LayerPlan& plan) {
  const IntField& window = d.out.sliding_window;
  if (plan.origin.kind == OriginKind::kField) {
    d.read.warn("CONFIG-WINDOW-MISSING", plan.origin.where,
                window.origin.rule.empty()
                    ? std::string("layers slide, but no width of the window is given; read as "
                                  "full attention")
                    : window.origin.rule + "; read as full attention");
  }
  for (PlannedLayer& layer : plan.layers) {
    if (layer.kind == LayerKind::kSliding) layer.kind = LayerKind::kFull;
  }
}

}  // namespace

Result<void> apply_window(Derivation& d, LayerPlan& plan, std::size_t count) {
  KERNELPATH_TRY(window, read_window(d));
  d.out.sliding_window = window.width;
  if (plan.layers.empty() && window.width) {
    if (!family_has_window(d)) {
      ignore_window(d);
      return {};
    }
    KERNELPATH_CHECK_OK(plan_by_window(d, window, plan, count));
  }
  if (!any_sliding(plan)) return {};
  if (!d.out.sliding_window) {
    drop_window(d, plan);
    return {};
  }
  const auto& longest = d.out.max_position_embeddings;
  if (longest && *d.out.sliding_window > *longest) {
    d.read.warn("CONFIG-WINDOW-LARGE",
                d.out.sliding_window.origin.where.empty() ? d.read.text_pointer + "/sliding_window"
                                                          : d.out.sliding_window.origin.where,
                fmt::format("the sliding window of {} tokens is wider than the longest context of "
                            "{}: no effect",
                            *d.out.sliding_window, *longest));
  }
  return {};
}

Result<void> apply_chunks(Derivation& d, LayerPlan& plan) {
  const Found found = d.read.find({"attention_chunk_size"});
  KERNELPATH_TRY(chunk, as_integer(d.read, found, {.min = 0}));
  const auto chunked = [](const PlannedLayer& layer) { return layer.kind == LayerKind::kChunked; };
  const bool used = std::any_of(plan.layers.begin(), plan.layers.end(), chunked);
  d.out.attention_chunk_size = chunk;
  if (used && chunk.value_or(0) > 0) return {};
  for (PlannedLayer& layer : plan.layers) {
    if (chunked(layer)) layer.kind = LayerKind::kFull;
  }
  if (!used && found.presence == Presence::kStated && !d.partial) {
    d.read.warn("CONFIG-CHUNK-UNUSED", found.origin.where,
                "no layer of this model attends in chunks; attention_chunk_size has no effect on "
                "the layers");
  }
  return {};
}

}  // namespace kernelpath::config
