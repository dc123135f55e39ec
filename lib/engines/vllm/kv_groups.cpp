#include "engines/vllm/kv_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace kernelpath::engines::vllm {
namespace {

RunError refusal(std::string_view type, std::string text, std::string_view rule) {
  return run_error("kv cache", type, std::move(text), rule);
}

SpecGroup one_spec_group(std::vector<IndexedSpec> layers, const KvSpec& merged) {
  for (IndexedSpec& row : layers) row.spec = merged;
  return {.layers = std::move(layers)};
}

enum class PageFault : std::uint8_t { kNone, kNotDivisible, kUnscalable };

// Grows or pads one layer's page to `page`.
PageFault fit_page(const Profile& profile, std::int64_t page, KvSpec& spec) {
  const std::int64_t own = spec.page_bytes();
  if (own == page) return PageFault::kNone;
  const bool later = profile.at_least(0, 33);
  if (later && spec.is_state()) {
    spec.page_size_padded = page;
    return PageFault::kNone;
  }
  const bool padded = later ? !spec.is_state() && spec.kind != SpecKind::kMla
                            : !spec.is_state() && spec.indexes_by_block_stride;
  if (own > 0 && page % own == 0) {
    spec.block_size *= page / own;
  } else if (padded) {
    spec.page_size_padded = page;
  } else {
    return PageFault::kNotDivisible;
  }
  return spec.page_bytes() == page ? PageFault::kNone : PageFault::kUnscalable;
}

// Makes all pages as large as the largest. Source: unify_kv_cache_spec_page_size.
PageFault unify_pages(const Profile& profile, std::vector<IndexedSpec>& specs) {
  std::int64_t largest = 0;
  for (const IndexedSpec& row : specs) largest = std::max(largest, row.spec.page_bytes());
  for (IndexedSpec& row : specs) {
    const PageFault fault = fit_page(profile, largest, row.spec);
    if (fault != PageFault::kNone) return fault;
  }
  return PageFault::kNone;
}

// Layers with equal specs, in the order of the first of each; since 0.33 also those whose specs
// merge.
std::vector<std::vector<IndexedSpec>> same_specs(const Profile& profile,
                                                 const std::vector<IndexedSpec>& specs) {
  std::vector<std::vector<IndexedSpec>> equal;
  for (const IndexedSpec& row : specs) {
    const auto same = std::ranges::find_if(equal, [&](const std::vector<IndexedSpec>& group) {
      return group.front().spec == row.spec;
    });
    if (same == equal.end()) {
      equal.push_back({row});
    } else {
      same->push_back(row);
    }
  }
  if (!profile.at_least(0, 33)) return equal;
  std::vector<std::vector<IndexedSpec>> merged;
  for (std::vector<IndexedSpec>& group : equal) {
    const auto fits = std::ranges::find_if(merged, [&](const std::vector<IndexedSpec>& bucket) {
      std::vector<IndexedSpec> both = bucket;
      both.push_back(group.front());
      return merge_specs(profile, both).spec.has_value();
    });
    if (fits == merged.end()) {
      merged.push_back(std::move(group));
    } else {
      fits->insert(fits->end(), group.begin(), group.end());
    }
  }
  return merged;
}

// Layers of a group: the fewest of one kind, or the most where they are nearly as many.
std::size_t group_size(const std::vector<std::vector<IndexedSpec>>& kinds) {
  std::size_t fewest = kinds.front().size();
  std::size_t most = 0;
  for (const auto& kind : kinds) {
    fewest = std::min(fewest, kind.size());
    most = std::max(most, kind.size());
  }
  return 2 * most < 3 * fewest ? most : fewest;
}

// Source: _get_kv_cache_groups_uniform_page_size.
void split_evenly(const Profile& profile, const std::vector<IndexedSpec>& specs,
                  Grouping& grouping) {
  const std::vector<std::vector<IndexedSpec>> kinds = same_specs(profile, specs);
  const std::size_t size = group_size(kinds);
  for (const auto& kind : kinds) {
    const std::size_t parts = (kind.size() + size - 1) / size;
    for (std::size_t part = 0; part < parts; ++part) {
      std::vector<IndexedSpec> layers;
      for (std::size_t i = part; i < kind.size(); i += parts) layers.push_back(kind[i]);
      const MergedSpec merged = merge_specs(profile, layers);
      const KvSpec spec = merged.spec.value_or(layers.front().spec);
      grouping.groups.push_back(one_spec_group(std::move(layers), spec));
    }
  }
}

// Windows beside a latent cache whose pages do not fit: kept as full attention (since 0.33).
std::optional<SpecGroup> full_allocation(const Profile& profile,
                                         const std::vector<IndexedSpec>& specs) {
  if (!profile.at_least(0, 33)) return std::nullopt;
  const auto any = [&](SpecKind kind) {
    return std::ranges::any_of(specs,
                               [&](const IndexedSpec& row) { return row.spec.kind == kind; });
  };
  if (any(SpecKind::kSlidingMla) || any(SpecKind::kChunked)) return std::nullopt;
  if (!any(SpecKind::kMla) || !any(SpecKind::kSliding)) return std::nullopt;
  std::optional<std::vector<IndexedSpec>> promoted = promote_local_layers(profile, specs);
  if (!promoted || !uniform_type(profile, *promoted)) return std::nullopt;
  return SpecGroup{.layers = std::move(*promoted), .uniform_type = true};
}

void unify_and_split(const Profile& profile, const std::vector<IndexedSpec>& specs,
                     Grouping& grouping) {
  std::vector<IndexedSpec> unified = specs;
  const PageFault fault = unify_pages(profile, unified);
  if (fault == PageFault::kNone) return split_evenly(profile, unified, grouping);
  if (fault == PageFault::kUnscalable) {
    grouping.error = refusal("AssertionError", "A page that does not grow with its block.",
                             "VLLM-KV-PAGE-UNSCALABLE");
    return;
  }
  if (std::optional<SpecGroup> fallback = full_allocation(profile, specs)) {
    grouping.events.push_back({.rule = "VLLM-KV-LOCAL-AS-FULL",
                               .candidate = "sliding_window",
                               .reason = "Pages of the windowed layers do not fit those of the "
                                         "others; they are kept as full attention.",
                               .severity = Severity::kWarn});
    grouping.groups.push_back(std::move(*fallback));
    return;
  }
  grouping.error = refusal("NotImplementedError",
                           "page size is not divisible by the maximum page size and cannot be "
                           "padded.",
                           "VLLM-KV-PAGE-INDIVISIBLE");
}

void turn_hybrid_off(const Profile& profile, std::vector<IndexedSpec>& specs, Grouping& grouping) {
  std::optional<std::vector<IndexedSpec>> promoted = promote_local_layers(profile, specs);
  if (!promoted) {
    grouping.error = refusal(
        "ValueError",
        profile.at_least(0, 33)
            ? "Failed to promote local KV cache specs to one unified type."
            : "Hybrid KV cache manager is disabled but failed to convert the KV cache specs to "
              "one unified type.",
        "VLLM-KV-HYBRID-OFF-MIXED");
    return;
  }
  const bool changed =
      !std::ranges::equal(*promoted, specs, {}, &IndexedSpec::spec, &IndexedSpec::spec);
  if (changed) {
    grouping.events.push_back(
        {.rule = "VLLM-KV-LOCAL-AS-FULL",
         .candidate = "hybrid KV cache manager",
         .reason = "It is off: windows and chunks are kept as full attention.",
         .severity = Severity::kWarn});
  }
  specs = std::move(*promoted);
}

// Every layer is in one group; the engine checks it since 0.33.
void check_partition(std::size_t layers, Grouping& grouping) {
  std::set<std::size_t> grouped;
  for (const SpecGroup& group : grouping.groups) {
    for (const IndexedSpec& row : group.layers) grouped.insert(row.layer);
  }
  if (grouping.error || grouped.size() == layers) return;
  grouping.groups.clear();
  grouping.error =
      refusal("AssertionError", "KV cache groups miss layers.", "VLLM-KV-GROUPS-INCOMPLETE");
}

bool pages_differ(const std::vector<IndexedSpec>& specs) {
  return std::ranges::any_of(specs, [&](const IndexedSpec& row) {
    return row.spec.page_bytes() != specs.front().spec.page_bytes();
  });
}

void group_mixed(const GroupingInput& input, const std::vector<IndexedSpec>& specs,
                 Grouping& grouping) {
  const bool later = input.profile.at_least(0, 33);
  if (later && input.blocks_outermost && pages_differ(specs)) {
    grouping.groups = packed_groups(input.profile, specs);
  } else if (!later) {
    grouping.groups = latent_groups(input.profile, specs);
  }
  if (grouping.groups.empty()) unify_and_split(input.profile, specs, grouping);
}

}  // namespace

std::int64_t SpecGroup::page_bytes() const {
  if (!uniform_type) return layers.front().spec.page_bytes();
  std::int64_t bytes = 0;
  for (const IndexedSpec& row : layers) bytes += row.spec.page_bytes();
  return bytes;
}

Grouping group_layers(const GroupingInput& input, std::vector<IndexedSpec> specs) {
  Grouping grouping;
  if (specs.empty()) return grouping;
  if (input.hybrid_manager_off) turn_hybrid_off(input.profile, specs, grouping);
  if (grouping.error) return grouping;
  const std::size_t layers = specs.size();
  const MergedSpec merged = merge_specs(input.profile, specs);
  if (merged.window_conflict) {
    grouping.error = refusal("ValueError",
                             "All attention layers in the same KV cache group must have the same "
                             "window size.",
                             "VLLM-KV-WINDOWS-DIFFER");
  } else if (merged.spec) {
    grouping.groups.push_back(one_spec_group(std::move(specs), *merged.spec));
  } else if (uniform_type(input.profile, specs)) {
    grouping.groups.push_back({.layers = std::move(specs), .uniform_type = true});
  } else {
    group_mixed(input, specs, grouping);
  }
  check_partition(layers, grouping);
  return grouping;
}

}  // namespace kernelpath::engines::vllm
