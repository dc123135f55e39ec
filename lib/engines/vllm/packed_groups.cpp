// Pages of different sizes side by side in each block (since 0.33).
// Source: v1/core/kv_cache_planning.py, _get_packed_kv_cache_groups.

#include "engines/vllm/kv_groups.h"

#include <algorithm>
#include <utility>

namespace kernelpath::engines::vllm {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Layers that can share a block table, and the same by the size of their pages.
struct Bucket {
  std::vector<IndexedSpec> layers;
  std::vector<std::pair<std::int64_t, std::vector<IndexedSpec>>> by_page = {};

  // One layer of each page size repeats.
  [[nodiscard]] bool balanced() const {
    return std::ranges::all_of(by_page, [&](const auto& row) {
      return row.second.size() == by_page.front().second.size();
    });
  }
  [[nodiscard]] std::int64_t most_of_a_page() const {
    std::size_t most = 0;
    for (const auto& [page, rows] : by_page) most = std::max(most, rows.size());
    return static_cast<std::int64_t>(most);
  }
  // Bytes of a block of the widest of n groups.
  [[nodiscard]] std::int64_t widest_bytes(std::int64_t n) const {
    std::int64_t bytes = 0;
    for (const auto& [page, rows] : by_page) {
      bytes += ceil_div(static_cast<std::int64_t>(rows.size()), n) * page;
    }
    return bytes;
  }
};

std::vector<Bucket> buckets_of(const Profile& profile, const std::vector<IndexedSpec>& specs) {
  std::vector<Bucket> buckets;
  for (const IndexedSpec& row : specs) {
    bool placed = false;
    for (Bucket& bucket : buckets) {
      bucket.layers.push_back(row);
      placed = uniform_type(profile, bucket.layers);
      if (placed) break;
      bucket.layers.pop_back();
    }
    if (!placed) buckets.push_back({.layers = {row}});
  }
  for (Bucket& bucket : buckets) {
    for (const IndexedSpec& row : bucket.layers) {
      const std::int64_t page = row.spec.page_bytes();
      const auto same =
          std::ranges::find(bucket.by_page, page, [](const auto& p) { return p.first; });
      if (same == bucket.by_page.end()) {
        bucket.by_page.emplace_back(page, std::vector<IndexedSpec>{row});
      } else {
        same->second.push_back(row);
      }
    }
  }
  return buckets;
}

// Repeats of the layer pattern that every group covers; 0: nothing needs packing.
std::int64_t repeats_per_group(const std::vector<Bucket>& buckets) {
  std::int64_t least = 0;
  std::vector<std::int64_t> balanced;
  for (const Bucket& bucket : buckets) {
    if (!bucket.balanced()) continue;
    balanced.push_back(bucket.most_of_a_page());
    if (bucket.by_page.size() > 1) least = std::max(least, bucket.most_of_a_page());
  }
  return least == 0 ? 0 : approximate_gcd(balanced, least);
}

bool keeps_states(const Bucket& bucket, std::int64_t repeats) {
  const SpecKind kind = bucket.layers.front().spec.kind;
  if (kind == SpecKind::kMamba) return true;
  const bool window = kind == SpecKind::kSliding || kind == SpecKind::kSlidingMla;
  return repeats == 0 && window;
}

std::int64_t groups_of(const Bucket& bucket, std::int64_t repeats) {
  if (repeats == 0 || !bucket.balanced()) return 1;
  return ceil_div(bucket.most_of_a_page(), repeats);
}

void split(const Bucket& bucket, std::int64_t parts, std::vector<SpecGroup>& groups) {
  if (parts == 1) {
    groups.push_back({.layers = bucket.layers, .uniform_type = true});
    return;
  }
  // As many whole patterns as the rarest page allows.
  std::size_t patterns = bucket.by_page.front().second.size();
  for (const auto& [page, rows] : bucket.by_page) patterns = std::min(patterns, rows.size());
  for (std::int64_t part = 0; part < parts; ++part) {
    SpecGroup group{.uniform_type = true};
    for (auto i = static_cast<std::size_t>(part); i < patterns;
         i += static_cast<std::size_t>(parts)) {
      for (const auto& [page, rows] : bucket.by_page) group.layers.push_back(rows[i]);
    }
    if (!group.layers.empty()) groups.push_back(std::move(group));
  }
}

}  // namespace

std::vector<SpecGroup> packed_groups(const Profile& profile,
                                     const std::vector<IndexedSpec>& specs) {
  const std::vector<Bucket> buckets = buckets_of(profile, specs);
  const std::int64_t repeats = repeats_per_group(buckets);
  std::int64_t block_bytes = 0;
  for (const Bucket& bucket : buckets) {
    const auto states = static_cast<std::int64_t>(bucket.layers.size());
    const std::int64_t parts = keeps_states(bucket, repeats) ? states : groups_of(bucket, repeats);
    block_bytes = std::max(block_bytes, bucket.widest_bytes(parts));
  }
  std::vector<SpecGroup> groups;
  for (const Bucket& bucket : buckets) {
    std::int64_t parts = groups_of(bucket, repeats);
    if (block_bytes > 0 && keeps_states(bucket, repeats)) {
      const std::int64_t page = std::max<std::int64_t>(bucket.layers.front().spec.page_bytes(), 1);
      const std::int64_t fitting = std::max<std::int64_t>(block_bytes / page, 1);
      parts = std::max(parts, ceil_div(static_cast<std::int64_t>(bucket.layers.size()), fitting));
    }
    split(bucket, parts, groups);
  }
  return groups;
}

}  // namespace kernelpath::engines::vllm
