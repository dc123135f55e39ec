#include "engines/vllm/kv_parts.h"

#include "engines/vllm/layer_groups.h"

#include <algorithm>

namespace kernelpath::engines::vllm {
namespace {

constexpr std::int64_t kRotaryValues = 64;  // of a packed latent, which stay in 16 bits …
constexpr std::int64_t kRotaryBytes = 2;
constexpr std::int64_t kFp4RotaryBytes = 1;  // … or, beside fp4 data, in 8

// Numbers that a state of the layer holds.
std::int64_t state_values(const KvSpec& spec) {
  if (is_mla(spec.kind)) return spec.head_size;
  return spec.num_kv_heads * (spec.head_size + spec.head_size_v);
}

// Bytes of a packed latent's numbers; 0 where it is a plain row.
std::int64_t packed_latent_data(const KvSpec& spec) {
  const std::int64_t latent = std::max<std::int64_t>(spec.head_size - kRotaryValues, 0);
  if (spec.cache_dtype == "fp8_ds_mla") return latent + kRotaryValues * kRotaryBytes;
  if (spec.cache_dtype == "nvfp4_ds_mla") return latent / 2 + kRotaryValues * kFp4RotaryBytes;
  return 0;
}

// Bytes of the numbers of one state, without scales and norms.
std::int64_t state_data_bytes(const KvSpec& spec) {
  if (const std::int64_t packed = packed_latent_data(spec); packed != 0) return packed;
  const std::int64_t values = state_values(spec);
  const std::string& mode = spec.quant_mode;
  if (mode == "NVFP4" || mode == "INT4_PER_TOKEN_HEAD" || mode == "ULTRAQUANT_4BIT") {
    return values / 2;
  }
  return values * dtype_bytes(spec.storage_dtype);
}

}  // namespace

KvParts kv_parts(const BuiltLayer& layer, const LayerCache& cache) {
  KvParts out;
  const std::int64_t total = token_bytes(cache);
  if (total == 0) return out;
  const KvSpec& spec = *cache.spec;
  const std::int64_t stored = cache.unpadded_page_bytes / spec.block_size;
  out.padding_bytes = total - stored;
  if (layer.role == LayerRole::kIndexer) {
    out.index_bytes = stored;
    return out;
  }
  const std::int64_t tokens = std::max<std::int64_t>(spec.tokens_per_state, 1);
  out.values = state_values(spec) / tokens;
  out.data_bytes = std::min(state_data_bytes(spec) / tokens, stored);
  out.scale_bytes = stored - out.data_bytes;
  return out;
}

}  // namespace kernelpath::engines::vllm
