#include "engines/vllm/kv_cache_plan.h"

#include "engines/vllm/block_size.h"
#include "engines/vllm/kernel_blocks.h"
#include "engines/vllm/kv_groups.h"
#include "engines/vllm/kv_shape.h"
#include "engines/vllm/layer_checks.h"
#include "engines/vllm/layer_spec.h"
#include "engines/vllm/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace kernelpath::engines::vllm {
namespace {

constexpr std::string_view kDefaultLayout = "NHD";

// The layout until 0.32: what the backend of the last layer that insists on one says.
std::string early_layout(const SelectorContext& context, const RunConfig& run,
                         std::span<const BuiltLayer> layers) {
  std::string layout = run.kv_layout.empty() ? std::string(kDefaultLayout) : run.kv_layout;
  for (const BuiltLayer& layer : layers) {
    if (layer.backend == nullptr) continue;
    const auto required = layouts_of(context, *layer.backend);
    if (required && !required->empty()) layout = required->front();
  }
  return layout;
}

std::vector<const BackendClass*> distinct_backends(const SelectorContext& context,
                                                   std::span<const BuiltLayer> layers) {
  std::vector<const BackendClass*> backends;
  std::set<std::string_view> seen;
  for (const BuiltLayer& layer : layers) {
    const BackendClass* backend = backend_of(context, layer);
    if (backend != nullptr && seen.insert(layer.class_name).second) backends.push_back(backend);
  }
  return backends;
}

// A page is one contiguous run: layers and blocks are the outermost axes.
bool block_compact(const Profile& profile, std::string_view layout) {
  const auto known = std::ranges::find(profile.layout_orders, layout, &StrideOrder::layout);
  if (known == profile.layout_orders.end() || known->order.size() < 2) return false;
  return known->order[0] <= 1 && known->order[1] <= 1;
}

bool block_outermost(const Profile& profile, std::string_view layout) {
  const auto known = std::ranges::find(profile.layout_orders, layout, &StrideOrder::layout);
  return known != profile.layout_orders.end() && !known->order.empty() && known->order[0] == 1;
}

// Builds the plan step by step; a step that the engine refuses ends it.
class Planner {
 public:
  Planner(const SelectorContext& context, const CacheModel& model,
          std::span<const BuiltLayer> layers, RunConfig& run)
      : context_(context), model_(model), layers_(layers), run_(run) {}

  KvCachePlan take() {
    const bool complete = choose_blocks() && check_parallelism() && specify_layers() &&
                          resolve_layout() && group() && shape();
    if (!complete) plan_.layers.clear();
    return std::move(plan_);
  }

 private:
  [[nodiscard]] bool later() const { return context_.profile.at_least(0, 33); }

  bool refuse(std::optional<RunError> error) {
    if (!error) return false;
    plan_.errors.push_back(std::move(*error));
    return true;
  }

  void note(std::vector<PlanEvent> events) {
    for (PlanEvent& event : events) plan_.events.push_back(std::move(event));
  }

  bool choose_blocks() {
    if (!later()) run_.kv_layout = early_layout(context_, run_, layers_);
    BlockSizeChoice choice = choose_block_size(context_, model_, layers_, run_);
    skip_page_ = choice.skip_page;
    note(std::move(choice.events));
    return !refuse(std::move(choice.error)) && !refuse(validate_block_size(context_, run_));
  }

  bool check_parallelism() { return !refuse(check_context_parallel(context_, run_, layers_)); }

  bool specify_layers() {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      std::optional<KvSpec> spec = layer_spec(context_, run_, layers_[i], skip_page_);
      if (!spec) continue;
      if (run_.dcp > 1 && spec->window) {
        return !refuse(run_error("kv cache", "AssertionError", "DCP not support sliding window.",
                                 "VLLM-DCP-WINDOW"));
      }
      specs_.push_back({.layer = i, .spec = std::move(*spec)});
    }
    return true;
  }

  // Since 0.33 one layout for the whole worker, from what every backend takes.
  bool resolve_layout() {
    if (!later()) {
      plan_.layout = run_.kv_layout;
      return true;
    }
    const auto backends = distinct_backends(context_, layers_);
    std::vector<std::string> candidates = common_layouts(context_, backends);
    std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> pages;
    for (const IndexedSpec& row : specs_) {
      const KvSpec& spec = row.spec;
      pages.insert({spec.is_state() ? 1 : spec.head_slots, spec.states_of(spec.block_size),
                    spec.page_bytes()});
    }
    if (pages.size() > 1) {
      std::erase_if(candidates, [&](const std::string& layout) {
        return !block_compact(context_.profile, layout);
      });
    }
    return choose_layout(candidates);
  }

  bool choose_layout(const std::vector<std::string>& candidates) {
    if (candidates.empty()) {
      return !refuse(run_error("kv cache", "ValueError",
                               "No KV cache layout satisfies every supported set.",
                               "VLLM-KV-LAYOUT-CONFLICT"));
    }
    const bool asked = !run_.kv_layout.empty();
    if (asked && std::ranges::find(candidates, run_.kv_layout) == candidates.end()) {
      return !refuse(
          run_error("kv cache", "ValueError",
                    fmt::format("VLLM_KV_CACHE_LAYOUT={} does not satisfy every supported "
                                "set",
                                run_.kv_layout),
                    "VLLM-KV-LAYOUT-REFUSED"));
    }
    if (!asked) run_.kv_layout = candidates.front();
    plan_.layout = run_.kv_layout;
    return true;
  }

  bool group() {
    const GroupingInput input = {
        .profile = context_.profile,
        .hybrid_manager_off = run_.hybrid_manager_off,
        .blocks_outermost = block_outermost(context_.profile, plan_.layout)};
    Grouping grouping = group_layers(input, specs_);
    note(std::move(grouping.events));
    if (refuse(std::move(grouping.error))) return false;
    plan_.layers.resize(layers_.size());
    for (const SpecGroup& group : grouping.groups) add_group(group);
    return true;
  }

  void add_group(const SpecGroup& group) {
    CacheGroup added = {.spec = group.uniform_type
                                    ? "UniformTypeKVCacheSpecs"
                                    : std::string(spec_class_name(group.layers.front().spec.kind)),
                        .block_size = group.block_size(),
                        .page_bytes = group.page_bytes()};
    for (const IndexedSpec& row : group.layers) {
      added.layers.push_back(row.layer);
      LayerCache& cache = plan_.layers[row.layer];
      cache.spec = row.spec;
      cache.page_bytes = row.spec.page_bytes();
      cache.unpadded_page_bytes = row.spec.unpadded_page_bytes();
      cache.group = plan_.groups.size();
    }
    plan_.groups.push_back(std::move(added));
  }

  bool shape() {
    return std::ranges::all_of(plan_.groups,
                               [&](const CacheGroup& group) { return shape_group(group); });
  }

  // Blocks of all layers side by side are never split into kernel blocks.
  [[nodiscard]] bool never_split(const CacheGroup& group) const {
    if (!block_outermost(context_.profile, plan_.layout)) return false;
    std::int64_t block_bytes = 0;
    for (const CacheGroup& any : plan_.groups) {
      std::int64_t bytes = 0;
      for (const std::size_t layer : any.layers) bytes += plan_.layers[layer].page_bytes;
      block_bytes = std::max(block_bytes, bytes);
    }
    return block_bytes > plan_.layers[group.layers.front()].page_bytes;
  }

  bool shape_group(const CacheGroup& group) {
    if (plan_.layers[group.layers.front()].spec->is_state()) return true;
    std::optional<std::int64_t> block = group.block_size;
    if (!never_split(group)) {
      block = common_kernel_block(context_, group.block_size, askers_of(group));
    }
    if (!block) {
      return !refuse(run_error("block size", "ValueError",
                               fmt::format("No common block size for {}. ", group.block_size),
                               "VLLM-KV-KERNEL-BLOCK"));
    }
    for (const std::size_t layer : group.layers) {
      LayerCache& cache = plan_.layers[layer];
      cache.kernel_block_size = *block;
      fill_shape(context_, backend_of(context_, layers_[layer]), plan_.layout, cache);
    }
    return true;
  }

  [[nodiscard]] std::vector<KernelBlockAsker> askers_of(const CacheGroup& group) const {
    std::vector<KernelBlockAsker> askers;
    for (const std::size_t layer : group.layers) {
      const BackendClass* backend = backend_of(context_, layers_[layer]);
      const KvSpec* spec = &*plan_.layers[layer].spec;
      const bool known = std::ranges::any_of(askers, [&](const KernelBlockAsker& asker) {
        return asker.backend == backend && *asker.spec == *spec;
      });
      if (backend != nullptr && !known) askers.push_back({.backend = backend, .spec = spec});
    }
    return askers;
  }

  const SelectorContext& context_;
  const CacheModel& model_;
  std::span<const BuiltLayer> layers_;
  RunConfig& run_;
  KvCachePlan plan_;
  std::vector<IndexedSpec> specs_;
  std::optional<std::int64_t> skip_page_;
};

}  // namespace

KvCachePlan plan_kv_cache(const SelectorContext& context, const CacheModel& model,
                          std::span<const BuiltLayer> layers, RunConfig& run) {
  return Planner(context, model, layers, run).take();
}

}  // namespace kernelpath::engines::vllm
