#include "engines/vllm/layer_spec.h"

#include "engines/vllm/kernel_blocks.h"
#include "engines/vllm/kv_packing.h"
#include "engines/vllm/profile.h"

#include <algorithm>

namespace kernelpath::engines::vllm {
namespace {

constexpr std::int64_t kTokenScalesBytes = 8;  // a float32 of keys and one of values
// One token of a latent cache with fp8 or fp4 data, rotary part and scales.
constexpr std::int64_t kDsMlaBytes = 656;
constexpr std::int64_t kNvfp4DsMlaBytes = 352;
constexpr std::int64_t kDeepseekV4Bytes = 584;

bool per_token_head(const KvSpec& spec) { return spec.quant_mode.ends_with("_PER_TOKEN_HEAD"); }

// Bytes of keys and values of one head and token until 0.32, without scales.
std::int64_t data_bytes(const KvSpec& spec) {
  const std::int64_t bytes = dtype_bytes(spec.storage_dtype);
  if (spec.quant_mode == "NVFP4") {
    return (nvfp4_head_bytes(spec.head_size) + nvfp4_head_bytes(spec.head_size_v)) * bytes;
  }
  // A sliding window's spec does not know that two elements share a byte.
  if (spec.quant_mode == "INT4_PER_TOKEN_HEAD" && spec.kind != SpecKind::kSliding) {
    return (spec.head_size / 2 + spec.head_size_v / 2) * bytes;
  }
  return (spec.head_size + spec.head_size_v) * bytes;
}

// Fills in slots and content as the layer asks for them, before a backend packs.
void fill_content(const SelectorContext& context, KvSpec& spec) {
  spec.head_slots = spec.num_kv_heads;
  if (context.profile.at_least(0, 33)) {
    spec.content_bytes = (spec.head_size + spec.head_size_v) * dtype_bytes(spec.storage_dtype);
    return;
  }
  spec.content_bytes = data_bytes(spec) + (per_token_head(spec) ? kTokenScalesBytes : 0);
}

// Bytes of a packed latent; 0 where the format is a plain row.
std::int64_t packed_latent_bytes(const SelectorContext& context, const KvSpec& spec) {
  if (spec.cache_dtype == "fp8_ds_mla") {
    return spec.model_version == "deepseek_v4" ? kDeepseekV4Bytes : kDsMlaBytes;
  }
  const bool nvfp4 = context.profile.at_least(0, 33) && spec.cache_dtype == "nvfp4_ds_mla";
  return nvfp4 ? kNvfp4DsMlaBytes : 0;
}

void fill_latent_content(const SelectorContext& context, KvSpec& spec) {
  spec.head_slots = spec.num_kv_heads;
  const std::int64_t packed = packed_latent_bytes(context, spec);
  // A window's spec has the packed size of DeepSeek V4 only.
  const bool applies = spec.kind != SpecKind::kSlidingMla || spec.model_version == "deepseek_v4" ||
                       context.profile.at_least(0, 33);
  if (packed != 0 && applies) {
    spec.content_bytes = packed;
    spec.packed = true;
    return;
  }
  spec.content_bytes = spec.head_size * dtype_bytes(spec.storage_dtype);
}

KvSpec latent_spec(const SelectorContext& context, const RunConfig& run, const BuiltLayer& layer) {
  const bool later = context.profile.at_least(0, 33);
  const bool indexer = layer.role == LayerRole::kIndexer;
  KvSpec spec = {.kind = layer.window ? SpecKind::kSlidingMla : SpecKind::kMla,
                 .block_size = layer.own_block_size.value_or(run.block_size),
                 .num_kv_heads = 1,
                 .head_size = layer.head_size,
                 .storage_dtype = storage_dtype(context, layer.kv_dtype, run.dtype),
                 .quant_mode = "NONE",
                 .tokens_per_state = layer.tokens_per_state,
                 .page_alignment = std::max<std::int64_t>(layer.page_alignment, 1),
                 .window = layer.window,
                 .model_version = layer.model_version};
  if (!indexer) {
    const bool own = later || !layer.model_version.empty();
    spec.cache_dtype = own ? layer.kv_dtype : run.cache_dtype;
    if (own) spec.quant_mode = quant_mode(context, layer.kv_dtype);
  }
  if (indexer && later) spec.cache_role = "indexer";
  fill_latent_content(context, spec);
  align_page(spec);
  return spec;
}

KvSpec state_spec(const RunConfig& run, const BuiltLayer& layer) {
  return {.kind = SpecKind::kMamba,
          .block_size = run.mamba_block_size.value_or(run.max_model_len),
          .page_size_padded = run.mamba_page_size_padded,
          .state_shapes = layer.state_shapes,
          .state_dtypes = layer.state_dtypes,
          .state_kind = layer.state_kind,
          .speculative_blocks = run.speculative_tokens};
}

// The block of a sliding window's cache until 0.32: the smallest of the kernels, or the largest
// that fits a page shared with quantized layers.
std::int64_t early_window_block(const std::vector<BlockSize>& sizes, std::int64_t token_bytes,
                                std::optional<std::int64_t> budget, std::int64_t fallback) {
  const bool any_fixed = !std::ranges::all_of(sizes, &BlockSize::multiple);
  std::vector<std::int64_t> candidates;
  for (const BlockSize& size : sizes) {
    if (!size.multiple || !any_fixed) candidates.push_back(size.size);
  }
  if (candidates.empty()) return fallback;
  std::int64_t chosen = std::ranges::min(candidates);
  if (!budget || token_bytes <= 0) return chosen;
  for (const std::int64_t candidate : candidates) {
    if (candidate * token_bytes <= *budget) chosen = std::max(chosen, candidate);
  }
  return chosen;
}

// Since 0.33 the run's own block size is the budget where nothing is shared.
std::int64_t window_block(const std::vector<BlockSize>& sizes, std::int64_t token_bytes,
                          std::int64_t budget, std::int64_t fallback) {
  if (sizes.empty() || token_bytes <= 0) return fallback;
  const std::int64_t most = budget / token_bytes;
  std::vector<std::int64_t> candidates;
  for (const BlockSize& size : sizes) {
    const std::int64_t aligned = most / size.size * size.size;
    candidates.push_back(size.multiple ? std::max(size.size, aligned) : size.size);
  }
  std::int64_t chosen = std::ranges::min(candidates);
  for (const std::int64_t candidate : candidates) {
    if (candidate * token_bytes <= budget) chosen = std::max(chosen, candidate);
  }
  return chosen;
}

void choose_window_block(const SelectorContext& context, const BackendClass* backend,
                         std::optional<std::int64_t> skip_page, KvSpec& spec) {
  const std::int64_t run_block = spec.block_size;
  spec.page_size_padded = skip_page;
  if (backend == nullptr) return;
  KvSpec token = spec;
  token.block_size = 1;
  token.page_size_padded.reset();
  if (!context.profile.at_least(0, 33)) {
    spec.block_size =
        early_window_block(kernel_block_sizes_of(context, *backend, nullptr),
                           token.num_kv_heads * data_bytes(token), skip_page, run_block);
    return;
  }
  pack_spec(context, *backend, token);
  const std::int64_t token_bytes = token.unpadded_page_bytes();
  spec.block_size = window_block(kernel_block_sizes_of(context, *backend, &token), token_bytes,
                                 skip_page.value_or(token_bytes * run_block), run_block);
}

SpecKind attention_kind(const SelectorContext& context, const BuiltLayer& layer) {
  if (layer.role == LayerRole::kCross) return SpecKind::kCross;
  if (layer.chunk) return SpecKind::kChunked;
  if (layer.rswa_window) return SpecKind::kRswa;
  if (layer.sink_length) return SpecKind::kSinkFull;
  if (layer.window) return SpecKind::kSliding;
  const bool own_class = !context.profile.at_least(0, 33);
  if (own_class && layer.kv_dtype.starts_with("turboquant_")) return SpecKind::kTurboQuant;
  return SpecKind::kFull;
}

KvSpec attention_spec(const SelectorContext& context, const RunConfig& run, const BuiltLayer& layer,
                      std::optional<std::int64_t> skip_page) {
  KvSpec spec = {.kind = attention_kind(context, layer),
                 .block_size = layer.own_block_size.value_or(run.block_size),
                 .num_kv_heads = layer.num_kv_heads,
                 .head_size = layer.head_size,
                 .head_size_v = layer.head_size_v > 0 ? layer.head_size_v : layer.head_size,
                 .storage_dtype = storage_dtype(context, layer.kv_dtype, run.dtype),
                 .quant_mode = quant_mode(context, layer.kv_dtype),
                 .chunk = layer.chunk,
                 .rswa_window = layer.rswa_window,
                 .sink_length = layer.sink_length};
  if (spec.kind == SpecKind::kChunked || spec.kind == SpecKind::kCross) {
    spec.head_size_v = spec.head_size;
  }
  if (spec.kind == SpecKind::kSliding) spec.window = layer.window;
  fill_content(context, spec);
  if (spec.kind == SpecKind::kTurboQuant) {
    spec.head_size_v = spec.head_size;
    spec.content_bytes = turboquant_slot_bytes(layer.kv_dtype, layer.head_size);
  }
  if (spec.kind == SpecKind::kSliding && !layer.own_block_size) {
    choose_window_block(context, backend_of(context, layer), skip_page, spec);
  }
  return spec;
}

}  // namespace

const BackendClass* backend_of(const SelectorContext& context, const BuiltLayer& layer) {
  if (layer.backend != nullptr) return layer.backend;
  return context.profile.find_layer_class(layer.class_name);
}

std::string storage_dtype(const SelectorContext& context, std::string_view kv_dtype,
                          std::string_view model_dtype) {
  const KvDtype* known = context.profile.find_kv_dtype(kv_dtype);
  if (known == nullptr) return std::string(kv_dtype);
  return std::string(known->stored_as.empty() ? model_dtype : known->stored_as);
}

std::string quant_mode(const SelectorContext& context, std::string_view kv_dtype) {
  const KvDtype* known = context.profile.find_kv_dtype(kv_dtype);
  return known == nullptr ? "NONE" : known->quant_mode;
}

KvSpec plain_spec(const SelectorContext& context, const PlainCache& cache) {
  KvSpec spec = {.kind = SpecKind::kFull,
                 .block_size = cache.block_size,
                 .num_kv_heads = cache.num_kv_heads,
                 .head_size = cache.head_size,
                 .head_size_v = cache.head_size,
                 .storage_dtype = storage_dtype(context, cache.kv_dtype, cache.model_dtype),
                 .quant_mode = quant_mode(context, cache.kv_dtype)};
  fill_content(context, spec);
  return spec;
}

std::optional<KvSpec> layer_spec(const SelectorContext& context, const RunConfig& run,
                                 const BuiltLayer& layer, std::optional<std::int64_t> skip_page) {
  if (layer.role == LayerRole::kEncoderOnly || layer.shares_cache) return std::nullopt;
  if (layer.role == LayerRole::kState) return state_spec(run, layer);
  const bool latent = layer.role == LayerRole::kMla || layer.role == LayerRole::kIndexer;
  KvSpec spec =
      latent ? latent_spec(context, run, layer) : attention_spec(context, run, layer, skip_page);
  const BackendClass* backend = backend_of(context, layer);
  if (backend == nullptr) return spec;
  if (context.profile.at_least(0, 33)) {
    customize_spec(context, *backend, spec);
  } else {
    const std::string& layout = run.kv_layout;
    spec.indexes_by_block_stride =
        std::ranges::find(backend->padded_layouts, layout) != backend->padded_layouts.end();
  }
  return spec;
}

}  // namespace kernelpath::engines::vllm
