// DeepSeek V4's groups until 0.32. Source: v1/core/kv_cache_utils.py,
// group_and_unify_kv_cache_specs and _get_kv_cache_groups_uniform_groups.

#include "base/rounding.h"
#include "engines/vllm/kv_groups.h"

#include <algorithm>
#include <map>
#include <utility>

namespace kernelpath::engines::vllm {
namespace {

// Layers by the size of their pages, sizes in the order of their first layer.
using ByPage = std::vector<std::pair<std::int64_t, std::vector<IndexedSpec>>>;

void add_by_page(std::int64_t page, const IndexedSpec& row, ByPage& by_page) {
  for (auto& [size, rows] : by_page) {
    if (size == page) return rows.push_back(row);
  }
  by_page.emplace_back(page, std::vector<IndexedSpec>{row});
}

// The most layers that share a page size.
std::int64_t layer_tuples(const std::vector<IndexedSpec>& specs) {
  std::map<std::int64_t, std::int64_t> counts;
  for (const IndexedSpec& row : specs) ++counts[row.spec.page_bytes()];
  std::int64_t most = 0;
  for (const auto& [page, count] : counts) most = std::max(most, count);
  return most;
}

// Windows are told apart by their block and their length.
std::vector<std::vector<IndexedSpec>> window_types(const std::vector<IndexedSpec>& specs) {
  std::vector<std::vector<IndexedSpec>> types;
  for (const IndexedSpec& row : specs) {
    if (row.spec.kind != SpecKind::kSlidingMla) continue;
    const auto same = std::ranges::find_if(types, [&](const std::vector<IndexedSpec>& type) {
      const KvSpec& first = type.front().spec;
      return first.block_size == row.spec.block_size && first.window == row.spec.window;
    });
    if (same == types.end()) {
      types.push_back({row});
    } else {
      same->push_back(row);
    }
  }
  return types;
}

// Pads every page to the next larger one of the full layers. False: one is larger than all.
bool pad_to(const std::vector<IndexedSpec>& full, const std::vector<IndexedSpec>& type,
            ByPage& by_page) {
  for (IndexedSpec row : type) {
    const std::int64_t page = row.spec.page_bytes();
    std::int64_t padded = 0;
    for (const IndexedSpec& other : full) {
      const std::int64_t candidate = other.spec.page_bytes();
      if (candidate >= page && (padded == 0 || candidate < padded)) padded = candidate;
    }
    if (padded == 0) return false;
    if (padded > page) row.spec.page_size_padded = padded;
    add_by_page(padded, row, by_page);
  }
  return true;
}

// Of each size every `parts`-th layer, from the `part`-th on.
SpecGroup group_of(const ByPage& by_page, std::size_t part, std::size_t parts) {
  SpecGroup group{.uniform_type = true};
  const std::size_t count = by_page.front().second.size();
  for (std::size_t i = part; i < count; i += parts) {
    for (const auto& [page, rows] : by_page) {
      if (i < rows.size()) group.layers.push_back(rows[i]);
    }
  }
  return group;
}

void split(const ByPage& by_page, std::int64_t tuples, std::vector<SpecGroup>& groups) {
  const auto count = static_cast<std::int64_t>(by_page.front().second.size());
  const auto parts = static_cast<std::size_t>((count + tuples - 1) / tuples);
  for (std::size_t part = 0; part < parts; ++part) groups.push_back(group_of(by_page, part, parts));
}

}  // namespace

std::int64_t approximate_gcd(const std::vector<std::int64_t>& values, std::int64_t least) {
  const std::int64_t largest = std::ranges::max(values);
  std::int64_t best = std::max<std::int64_t>(least, 1);
  std::int64_t best_waste = -1;
  for (std::int64_t size = best; size <= largest; ++size) {
    std::int64_t waste = 0;
    for (const std::int64_t value : values) waste += round_up(value, size) - value;
    if (best_waste >= 0 && waste > best_waste) continue;
    best_waste = waste;
    best = size;
  }
  return best;
}

std::vector<SpecGroup> latent_groups(const Profile& /*profile*/,
                                     const std::vector<IndexedSpec>& specs) {
  const std::vector<std::vector<IndexedSpec>> windows = window_types(specs);
  if (windows.empty()) return {};
  SpecGroup full{.uniform_type = true};
  for (const IndexedSpec& row : specs) {
    if (row.spec.kind == SpecKind::kMla) full.layers.push_back(row);
  }
  if (full.layers.empty()) return {};
  std::vector<std::int64_t> counts = {layer_tuples(full.layers)};
  for (const auto& type : windows) counts.push_back(layer_tuples(type));
  const std::int64_t tuples = approximate_gcd(counts, counts.front());
  std::vector<SpecGroup> groups = {full};
  for (const auto& type : windows) {
    ByPage by_page;
    if (!pad_to(full.layers, type, by_page)) return {};
    split(by_page, tuples, groups);
  }
  return groups;
}

}  // namespace kernelpath::engines::vllm
