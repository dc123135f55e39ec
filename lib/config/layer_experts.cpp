// Which layers have a mixture of experts.

#include "config/layer_plan.h"

#include <fmt/format.h>

namespace kernelpath::config {
namespace {

using Flags = std::vector<bool>;

// mlp_layer_types: "dense" or "sparse" for every layer.
Result<Flags> by_names(const Derivation& d, std::size_t count) {
  Flags flags;
  const Found found = d.read.find_stated({"mlp_layer_types"});
  if (!found || !found.value->is_array()) return flags;
  if (found.value->items().size() != count) {
    return fail(Error{
        .code = ErrorCode::kConfigValue,
        .message = fmt::format("{} entries for {} layers", found.value->items().size(), count),
        .where = found.origin.where});
  }
  for (const json::Value& item : found.value->items()) {
    KERNELPATH_TRY(name, to_name(item, fmt::format("{}/{}", found.origin.where, flags.size())));
    // DeepSeek-V4 has two kinds of experts, both sparse.
    flags.push_back(name != "dense");
  }
  return flags;
}

// moe_layer_freq as a list of 0 and 1 (MiMo-V2, MiniMax-M3).
Result<Flags> by_list(const Derivation& d, std::size_t count) {
  Flags flags;
  const Found found = d.read.find_stated({"moe_layer_freq"});
  if (!found || !found.value->is_array()) return flags;
  KERNELPATH_TRY(list, as_integers(d.read, found, {.min = 0}));
  for (std::size_t index = 0; index < count; ++index) {
    flags.push_back(index < list.size() && list[index] != 0);
  }
  return flags;
}

// Llama 4: indices, or every n-th layer.
Result<Flags> by_step(const Derivation& d, std::size_t count) {
  Flags flags;
  KERNELPATH_TRY(indices, as_integers(d.read, d.read.find_stated({"moe_layers"}), {.min = 0}));
  if (!indices.empty()) {
    flags.assign(count, false);
    for (const std::int64_t index : indices) {
      if (index < static_cast<std::int64_t>(count)) flags[static_cast<std::size_t>(index)] = true;
    }
    return flags;
  }
  KERNELPATH_TRY(step, read_integer(d.read, {"interleave_moe_layer_step"}));
  if (!step) return flags;
  for (std::size_t index = 0; index < count; ++index) {
    flags.push_back((static_cast<std::int64_t>(index) + 1) % *step == 0);
  }
  return flags;
}

// Jamba: every `period` layers, at `offset`.
Result<Flags> by_offset(const Derivation& d, std::size_t count) {
  Flags flags;
  KERNELPATH_TRY(period, read_integer(d.read, {"expert_layer_period"}));
  if (!period) return flags;
  KERNELPATH_TRY(offset, read_integer(d.read, {"expert_layer_offset"}, {.min = 0}));
  for (std::size_t index = 0; index < count; ++index) {
    flags.push_back(static_cast<std::int64_t>(index) % *period == offset.value_or(0));
  }
  return flags;
}

// ERNIE 4.5: every n-th layer between two indices; an end of -1 is the last layer.
Result<Flags> by_range(const Derivation& d, std::size_t count) {
  Flags flags;
  KERNELPATH_TRY(interval, read_integer(d.read, {"moe_layer_interval"}));
  KERNELPATH_TRY(start, read_integer(d.read, {"moe_layer_start_index"}, {.min = 0}));
  if (!interval || !start) return flags;
  KERNELPATH_TRY(end, read_integer(d.read, {"moe_layer_end_index"}, {.min = -1}));
  const auto last = static_cast<std::int64_t>(count) - 1;
  const std::int64_t stop = end && *end >= 0 ? *end : last;
  for (std::int64_t index = 0; index <= last; ++index) {
    flags.push_back((index + 1) % *interval == 0 && index >= *start && index <= stop);
  }
  return flags;
}

// Qwen: every n-th layer that mlp_only_layers does not name; 0 means none.
Result<Flags> by_sparse_step(const Derivation& d, std::size_t count) {
  Flags flags;
  KERNELPATH_TRY(step, read_integer(d.read, {"decoder_sparse_step"}, {.min = 0}));
  KERNELPATH_TRY(dense, as_integers(d.read, d.read.find_stated({"mlp_only_layers"}), {.min = 0}));
  if (!step && dense.empty()) return flags;
  const std::int64_t period = step.value_or(1);
  for (std::size_t index = 0; index < count; ++index) {
    flags.push_back(period > 0 && (static_cast<std::int64_t>(index) + 1) % period == 0);
  }
  for (const std::int64_t index : dense) {
    if (index < static_cast<std::int64_t>(count)) flags[static_cast<std::size_t>(index)] = false;
  }
  return flags;
}

// DeepSeek: the first k layers are dense, then every n-th has experts.
Result<Flags> by_first_dense(const Derivation& d, std::size_t count) {
  const std::int64_t dense = d.out.moe->first_k_dense_replace.value_or(0);
  const Found found = d.read.find({"moe_layer_freq"});
  IntField every;
  if (found && !found.value->is_array()) {
    KERNELPATH_TRY(freq, as_integer(d.read, found));
    every = freq;
  }
  Flags flags;
  for (std::int64_t index = 0; index < static_cast<std::int64_t>(count); ++index) {
    flags.push_back(index >= dense && index % every.value_or(1) == 0);
  }
  return flags;
}

}  // namespace

Result<std::vector<bool>> expert_layers(const Derivation& d, const LayerPlan& plan) {
  const std::size_t count = plan.layers.size();
  Flags flags(count, false);
  if (!d.out.moe) return flags;
  bool named = false;
  for (std::size_t index = 0; index < count; ++index) {
    flags[index] = plan.layers[index].moe.value_or(false);
    named = named || plan.layers[index].moe.has_value();
  }
  if (named) return flags;
  for (const auto& source : {by_names, by_list, by_step, by_offset, by_range, by_sparse_step}) {
    KERNELPATH_TRY(found, source(d, count));
    if (!found.empty()) return found;
  }
  return by_first_dense(d, count);
}

}  // namespace kernelpath::config
