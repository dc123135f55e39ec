#pragma once

#include "engines/vllm/kv_spec.h"
#include "engines/vllm/profile.h"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace kernelpath::engines::vllm {

// The spec of one built layer.
struct IndexedSpec {
  std::size_t layer = 0;
  KvSpec spec = {};
};

// What several specs are when they are kept as one.
struct MergedSpec {
  std::optional<KvSpec> spec = {};  // nothing: they cannot be
  bool window_conflict = false;     // the engine raises a ValueError instead of trying on
};

// Source: merge() of the classes in v1/kv_cache_interface.py. `specs` is not empty.
MergedSpec merge_specs(const Profile& profile, std::span<const IndexedSpec> specs);

// All layers need the same number of token slots: they can share a block table though their pages
// differ. Source: UniformTypeKVCacheSpecs.is_uniform_type.
bool uniform_type(const Profile& profile, std::span<const IndexedSpec> specs);

}  // namespace kernelpath::engines::vllm
