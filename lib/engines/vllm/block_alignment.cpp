#include "engines/vllm/block_alignment.h"

#include "engines/vllm/kernel_blocks.h"
#include "engines/vllm/kv_packing.h"
#include "engines/vllm/layer_spec.h"
#include "engines/vllm/profile.h"
#include "engines/vllm/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace kernelpath::engines::vllm {
namespace {

// Decode kernels of latent caches want whole groups of kernel blocks.
constexpr std::int64_t kLatentBlockTokens = 128;
// Of states without chunks. Source: config/model.py, get_mamba_chunk_size.
constexpr std::int64_t kDefaultChunk = 2048;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Bytes of one token in one plain attention layer, as the run's first backend packs it.
std::int64_t token_bytes(const AlignmentInput& input, const RunConfig& run,
                         std::string_view kv_dtype) {
  KvSpec spec = plain_spec(input.context, {.num_kv_heads = input.model.num_kv_heads,
                                           .head_size = input.model.head_size,
                                           .kv_dtype = kv_dtype,
                                           .model_dtype = run.dtype});
  if (input.context.profile.at_least(0, 33)) {
    pack_spec(input.context, *input.backends.front(), spec);
  }
  return spec.unpadded_page_bytes();
}

// The packed types have a slot of their own, whichever backend comes first.
std::int64_t packed_token_bytes(const AlignmentInput& input, const RunConfig& run) {
  std::int64_t slot = turboquant_slot_bytes(run.cache_dtype, input.model.head_size);
  if (run.cache_dtype == "ultraquant_4bit") {
    slot = input.model.head_size + input.model.head_size / 16;
  }
  const std::int64_t packed = input.model.num_kv_heads * slot;
  if (run.skip_layers.empty()) return packed;
  const KvSpec skipped = plain_spec(input.context, {.num_kv_heads = input.model.num_kv_heads,
                                                    .head_size = input.model.head_size,
                                                    .model_dtype = run.dtype});
  return std::lcm(packed, skipped.unpadded_page_bytes());
}

std::int64_t attention_token_bytes(const AlignmentInput& input, const RunConfig& run) {
  if (input.model.use_mla) {
    const std::string stored = storage_dtype(input.context, run.cache_dtype, run.dtype);
    return input.model.head_size * dtype_bytes(stored);
  }
  const bool later = input.context.profile.at_least(0, 33);
  if (run.cache_dtype.starts_with("turboquant_") ||
      (later && run.cache_dtype == "ultraquant_4bit")) {
    return packed_token_bytes(input, run);
  }
  return token_bytes(input, run, run.cache_dtype);
}

// The largest page of a state; 0 for a model without.
std::int64_t state_page_bytes(std::span<const BuiltLayer> layers) {
  std::int64_t page = 0;
  for (const BuiltLayer& layer : layers) {
    if (layer.role != LayerRole::kState) continue;
    const KvSpec spec = {.kind = SpecKind::kMamba,
                         .state_shapes = layer.state_shapes,
                         .state_dtypes = layer.state_dtypes};
    page = std::max(page, spec.unpadded_page_bytes());
  }
  return page;
}

// Multiples at which a prefill keeps checkpoints of all states; 1 unless every layer can.
std::int64_t checkpoint_alignment(std::span<const BuiltLayer> layers) {
  std::int64_t alignment = 1;
  for (const BuiltLayer& layer : layers) {
    if (layer.role != LayerRole::kState) continue;
    if (!layer.checkpoint_alignment) return 1;
    alignment = std::lcm(alignment, *layer.checkpoint_alignment);
  }
  return alignment;
}

std::int64_t smallest_block(const AlignmentInput& input, const BackendClass& backend) {
  return smallest_kernel_block(kernel_block_sizes(input.context, backend));
}

// Tokens that the aligned block is a multiple of, before all backends are asked.
std::int64_t state_alignment(const AlignmentInput& input, const RunConfig& run) {
  std::int64_t alignment = std::max(smallest_block(input, *input.backends.front()), run.block_size);
  if (!input.context.profile.at_least(0, 33)) return alignment;
  if (input.model.use_mla) alignment = std::max(alignment, kLatentBlockTokens);
  if (run.mamba_cache_mode == "align") {
    alignment = std::lcm(alignment, checkpoint_alignment(input.layers));
  }
  return alignment;
}

std::int64_t all_backends_alignment(const AlignmentInput& input) {
  std::int64_t alignment = 1;
  for (const BackendClass* backend : input.backends) {
    alignment = std::lcm(alignment, std::max<std::int64_t>(smallest_block(input, *backend), 1));
  }
  return alignment;
}

void raise_block_size(std::int64_t size, std::string_view why, std::string_view rule,
                      RunConfig& run, BlockSizeChoice& choice) {
  if (run.block_size >= size) return;
  choice.events.push_back(
      {.rule = rule,
       .candidate = "block_size",
       .reason = fmt::format("block_size goes from {} to {}{}: {}", run.block_size, size,
                             run.user_block_size ? ", over the user's" : "", why),
       .severity = run.user_block_size ? Severity::kWarn : Severity::kInfo});
  run.block_size = size;
}

// With mode "all" a state is kept at every chunk, so blocks are whole chunks (until 0.32).
std::int64_t chunked_block(const AlignmentInput& input, std::int64_t alignment,
                           std::int64_t state_page, std::int64_t token) {
  const std::int64_t base = input.model.user_mamba_block_size.value_or(
      input.model.mamba_chunk_size.value_or(kDefaultChunk));
  const std::int64_t chunk = std::lcm(std::max<std::int64_t>(base, 1), alignment);
  return chunk * ceil_div(ceil_div(state_page, token), chunk);
}

void pad_states(std::int64_t page, std::int64_t state_page, RunConfig& run,
                BlockSizeChoice& choice) {
  if (page == state_page || run.mamba_page_size_padded == page) return;
  run.mamba_page_size_padded = page;
  choice.events.push_back(
      {.rule = "VLLM-KV-STATE-PADDED",
       .candidate = "mamba_page_size_padded",
       .reason = fmt::format("A state of {} bytes is padded to the attention page of {} bytes.",
                             state_page, page)});
}

}  // namespace

void align_states(const AlignmentInput& input, RunConfig& run, BlockSizeChoice& choice) {
  const std::int64_t state_page = state_page_bytes(input.layers);
  const std::int64_t token = attention_token_bytes(input, run);
  if (state_page == 0 || token <= 0) return;
  const std::int64_t alignment = std::max<std::int64_t>(state_alignment(input, run), 1);
  const bool chunked = run.mamba_cache_mode == "all" && !input.context.profile.at_least(0, 33);
  std::int64_t block = alignment * ceil_div(state_page, alignment * token);
  if (chunked) {
    block = chunked_block(input, alignment, state_page, token);
    run.mamba_block_size = block;
  } else if (input.context.profile.at_least(0, 33)) {
    const std::int64_t common = all_backends_alignment(input);
    block = common * ceil_div(block, common);
  }
  raise_block_size(block, "an attention page must hold a state.", "VLLM-KV-BLOCK-HYBRID", run,
                   choice);
  if (run.mamba_cache_mode == "align") run.mamba_block_size = run.block_size;
  pad_states(run.block_size * token, state_page, run, choice);
}

void align_mixed_types(const AlignmentInput& input, RunConfig& run, BlockSizeChoice& choice) {
  const std::int64_t quantized = token_bytes(input, run, run.cache_dtype);
  const std::int64_t plain = token_bytes(input, run, "auto");
  if (plain == quantized || quantized <= 0) return;
  if (plain < quantized) {
    choice.error = RunError{
        .stage = "block size",
        .type = "AssertionError",
        .text = fmt::format("padded-spec per-token page ({}B) < primary ({}B); a higher-precision "
                            "padded spec must not be smaller than the quantized primary.",
                            plain, quantized),
        .rule = "VLLM-KV-SKIP-SMALLER"};
    return;
  }
  const std::int64_t kernel_block = smallest_block(input, *input.backends.front());
  const std::int64_t alignment = std::max(kernel_block, run.block_size);
  const std::int64_t needed =
      std::max(plain * kernel_block, run.mamba_page_size_padded.value_or(0));
  raise_block_size(alignment * ceil_div(needed, alignment * quantized),
                   "a quantized page must hold that of a layer that is left out.",
                   "VLLM-KV-BLOCK-MIXED", run, choice);
  const std::int64_t shared = run.block_size * quantized;
  choice.skip_page = shared;
  if (run.mamba_page_size_padded) run.mamba_page_size_padded = shared;
}

}  // namespace kernelpath::engines::vllm
