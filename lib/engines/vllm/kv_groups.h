#pragma once

#include "engines/vllm/kv_cache_plan.h"
#include "engines/vllm/spec_merge.h"

#include <optional>
#include <string_view>
#include <vector>

namespace kernelpath::engines::vllm {

// Layers that share one block table.
struct SpecGroup {
  std::vector<IndexedSpec> layers = {};  // with the specs that they end with
  bool uniform_type = false;             // a spec a layer; else one for all

  [[nodiscard]] std::int64_t block_size() const { return layers.front().spec.block_size; }
  [[nodiscard]] std::int64_t page_bytes() const;  // of all layers where each has its own spec
};

struct Grouping {
  std::vector<SpecGroup> groups = {};
  std::vector<PlanEvent> events = {};
  std::optional<RunError> error = {};
};

struct GroupingInput {
  const Profile& profile;
  bool hybrid_manager_off = false;
  // Since 0.33: blocks of all layers lie side by side in memory, so that pages may differ.
  bool blocks_outermost = false;
};

// Splits the layers into groups. Source: v1/core/kv_cache_utils.py (until 0.32),
// v1/core/kv_cache_planning.py, get_kv_cache_groups.
Grouping group_layers(const GroupingInput& input, std::vector<IndexedSpec> specs);

// --- steps of it, each its own file -----------------------------------------------------------

// Local layers kept as full attention, where the hybrid manager is off. Nothing: the engine's
// ValueError. local_layers.cpp
std::optional<std::vector<IndexedSpec>> promote_local_layers(const Profile& profile,
                                                             std::vector<IndexedSpec> specs);

// Latent caches with windows beside them, of DeepSeek V4 until 0.32; empty for other models.
// latent_groups.cpp
std::vector<SpecGroup> latent_groups(const Profile& profile, const std::vector<IndexedSpec>& specs);

// Layers with different pages side by side in each block (since 0.33). packed_groups.cpp
std::vector<SpecGroup> packed_groups(const Profile& profile, const std::vector<IndexedSpec>& specs);

// Of all numbers from `least` on, the one whose multiples waste least above `values`; the larger
// one of equals. latent_groups.cpp
std::int64_t approximate_gcd(const std::vector<std::int64_t>& values, std::int64_t least);

}  // namespace kernelpath::engines::vllm
