// Windows and chunks kept as full attention. Source: v1/core/kv_cache_utils.py (until 0.32),
// unify_hybrid_kv_cache_specs; v1/core/kv_cache_planning.py, _promote_local_kv_cache_specs.

#include "engines/vllm/kv_groups.h"

#include <algorithm>

namespace kernelpath::engines::vllm {
namespace {

bool of_one_type(const Profile& profile, const std::vector<IndexedSpec>& specs) {
  return merge_specs(profile, specs).spec.has_value() || uniform_type(profile, specs);
}

bool is_local(SpecKind kind) {
  return kind == SpecKind::kSliding || kind == SpecKind::kSlidingMla || kind == SpecKind::kChunked;
}

// The block size of the full layers, if they have one; else nothing.
std::optional<std::int64_t> full_block_size(const std::vector<IndexedSpec>& specs, bool first) {
  std::optional<std::int64_t> size;
  for (const IndexedSpec& row : specs) {
    if (!is_full_attention(row.spec.kind)) continue;
    if (first) return row.spec.block_size;
    if (size && *size != row.spec.block_size) return std::nullopt;
    size = row.spec.block_size;
  }
  return size;
}

// Until 0.32 a new spec is built, and what it is not given is lost: padding by stride, and a
// chunk's type of quantization.
void promote_early(const std::vector<IndexedSpec>& specs, KvSpec& spec) {
  spec.indexes_by_block_stride = false;
  if (spec.kind == SpecKind::kSlidingMla) {
    spec.block_size = full_block_size(specs, true).value_or(spec.block_size);
    spec.kind = SpecKind::kMla;
    spec.window.reset();
    align_page(spec);
    return;
  }
  if (spec.kind == SpecKind::kChunked) {
    spec.quant_mode = "NONE";
    spec.content_bytes = 2 * spec.head_size * dtype_bytes(spec.storage_dtype);
  } else if (spec.quant_mode == "INT4_PER_TOKEN_HEAD") {
    spec.content_bytes -= (spec.head_size + spec.head_size_v) / 2;
  }
  spec.kind = SpecKind::kFull;
}

void promote(std::optional<std::int64_t> block_size, KvSpec& spec) {
  const std::int64_t before = spec.block_size;
  spec.block_size = block_size.value_or(before);
  if (spec.page_size_padded && before > 0) {
    const std::int64_t unpadded = spec.unpadded_page_bytes();
    spec.page_size_padded = std::max(*spec.page_size_padded, unpadded);
  }
  spec.kind = spec.kind == SpecKind::kSlidingMla ? SpecKind::kMla : SpecKind::kFull;
  align_page(spec);
}

}  // namespace

std::optional<std::vector<IndexedSpec>> promote_local_layers(const Profile& profile,
                                                             std::vector<IndexedSpec> specs) {
  if (of_one_type(profile, specs)) return specs;
  const bool full = std::ranges::any_of(
      specs, [](const IndexedSpec& row) { return is_full_attention(row.spec.kind); });
  if (full) {
    const std::vector<IndexedSpec> before = specs;
    const std::optional<std::int64_t> block_size = full_block_size(before, false);
    for (IndexedSpec& row : specs) {
      if (!is_local(row.spec.kind)) continue;
      if (profile.at_least(0, 33)) {
        promote(block_size, row.spec);
      } else {
        promote_early(before, row.spec);
      }
    }
  }
  if (!of_one_type(profile, specs)) return std::nullopt;
  return specs;
}

}  // namespace kernelpath::engines::vllm
