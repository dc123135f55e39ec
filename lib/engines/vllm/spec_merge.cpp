#include "engines/vllm/spec_merge.h"

#include <algorithm>
#include <set>

namespace kernelpath::engines::vllm {
namespace {

// The fields of the engine's AttentionSpec.
bool same_attention(const Profile& profile, const KvSpec& a, const KvSpec& b) {
  if (a.block_size != b.block_size || a.num_kv_heads != b.num_kv_heads ||
      a.head_size != b.head_size || a.storage_dtype != b.storage_dtype ||
      a.quant_mode != b.quant_mode || a.page_size_padded != b.page_size_padded ||
      a.indexes_by_block_stride != b.indexes_by_block_stride) {
    return false;
  }
  if (!profile.at_least(0, 33)) return true;
  return a.head_size_v == b.head_size_v && a.head_slots == b.head_slots &&
         a.content_bytes == b.content_bytes && a.tokens_per_state == b.tokens_per_state &&
         a.stride_alignment == b.stride_alignment;
}

bool same_latent(const Profile& profile, const KvSpec& a, const KvSpec& b) {
  if (a.kind != b.kind || a.cache_dtype != b.cache_dtype ||
      a.tokens_per_state != b.tokens_per_state || a.model_version != b.model_version ||
      a.indexes_by_block_stride != b.indexes_by_block_stride) {
    return false;
  }
  if (a.kind == SpecKind::kSlidingMla) {
    return a.window == b.window && a.stride_alignment == b.stride_alignment;
  }
  if (!profile.at_least(0, 33)) return true;
  return a.cache_role == b.cache_role && same_attention(profile, a, b);
}

// The one value that is set in some of them; nothing in none. False: two values.
bool one_value(std::span<const IndexedSpec> specs, std::optional<std::int64_t> KvSpec::*field,
               std::optional<std::int64_t>& value) {
  for (const IndexedSpec& row : specs) {
    const std::optional<std::int64_t>& own = row.spec.*field;
    if (!own) continue;
    if (value && *value != *own) return false;
    value = own;
  }
  return true;
}

MergedSpec merge_full(const Profile& profile, std::span<const IndexedSpec> specs) {
  const KvSpec& first = specs.front().spec;
  const bool rswa = first.kind == SpecKind::kRswa;
  for (const IndexedSpec& row : specs) {
    const KvSpec& spec = row.spec;
    if (!is_full_attention(spec.kind) || spec.kind == SpecKind::kMla) return {};
    if (rswa && (spec.kind != first.kind || spec.rswa_window != first.rswa_window)) return {};
  }
  KvSpec merged = first;
  merged.window.reset();
  merged.chunk.reset();
  if (!one_value(specs, &KvSpec::window, merged.window) ||
      !one_value(specs, &KvSpec::chunk, merged.chunk)) {
    return {.spec = std::nullopt, .window_conflict = true};
  }
  if (merged.window && merged.chunk) return {};
  const bool packed = first.kind == SpecKind::kTurboQuant;
  for (const IndexedSpec& row : specs) {
    if (!same_attention(profile, row.spec, merged)) return {};
    if (packed && row.spec.content_bytes != first.content_bytes) return {};
  }
  return {.spec = std::move(merged)};
}

}  // namespace

MergedSpec merge_specs(const Profile& profile, std::span<const IndexedSpec> specs) {
  const KvSpec& first = specs.front().spec;
  if (is_full_attention(first.kind) && first.kind != SpecKind::kMla) {
    return merge_full(profile, specs);
  }
  const bool latent = is_mla(first.kind);
  for (const IndexedSpec& row : specs) {
    const bool same = latent ? same_latent(profile, row.spec, first) : row.spec == first;
    if (!same) return {};
  }
  return {.spec = first};
}

bool uniform_type(const Profile& profile, std::span<const IndexedSpec> specs) {
  const KvSpec& first = specs.front().spec;
  const auto fits = [&](const KvSpec& spec) {
    if (spec.block_size != first.block_size) return false;
    if (is_full_attention(first.kind)) return is_full_attention(spec.kind);
    switch (first.kind) {
      case SpecKind::kSliding:
        return (spec.kind == SpecKind::kSliding || spec.kind == SpecKind::kSlidingMla) &&
               spec.window == first.window;
      case SpecKind::kSlidingMla:
        return spec.kind == first.kind && spec.window == first.window;
      case SpecKind::kChunked:
        return spec.kind == first.kind && spec.chunk == first.chunk;
      case SpecKind::kMamba:
        return spec.kind == first.kind && spec.speculative_blocks == first.speculative_blocks &&
               (!profile.at_least(0, 33) || spec.page_bytes() == first.page_bytes());
      default:
        return spec.kind == first.kind;
    }
  };
  return std::ranges::all_of(specs, fits, &IndexedSpec::spec);
}

}  // namespace kernelpath::engines::vllm
