#include "engines/deepinfer/kv_cache.h"

#include "base/rounding.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

namespace kernelpath::engines::deepinfer {
namespace {

constexpr std::int64_t kAlignment = 32;
constexpr std::int64_t kLatentDim = 512;

std::int64_t index_bytes_per_token(const Model& model) {
  constexpr std::int64_t kValuesPerScale = 32;
  return model.index_head_dim / 2 + model.index_head_dim / kValuesPerScale;
}

// What one layer owns of a block.
BlockPart layer_part(const Model& model, const Topology& topology, const KvCache& cache,
                     std::int64_t layer) {
  BlockPart part{.layer = layer};
  if (!model.compressed(layer)) return part;
  const std::int64_t ratio = model.compress_ratios[static_cast<std::size_t>(layer)];
  const std::int64_t tokens = cache.block_size / ratio;
  if (model.index_topk != 0 && Topology::is_source(topology.index_k, layer)) {
    part.index_bytes = round_up(tokens * cache.index_bytes_per_token, kAlignment);
  }
  part.bytes = part.index_bytes;
  if (Topology::is_source(topology.kv, layer)) {
    part.tokens = tokens;
    part.bytes += round_up(tokens * cache.main_bytes_per_token, kAlignment);
  }
  return part;
}

void lay_out_block(const Model& model, const Topology& topology, KvCache& cache) {
  std::int64_t offset = 0;
  for (std::int64_t layer = 0; layer < model.all_layers(); ++layer) {
    BlockPart part = layer_part(model, topology, cache, layer);
    if (part.bytes == 0) continue;
    part.offset = offset;
    offset += part.bytes;
    cache.layout.push_back(part);
  }
  cache.bytes_per_block = round_up(offset, std::lcm(std::int64_t{128}, cache.main_bytes_per_token));
  cache.padding = cache.bytes_per_block - offset;
}

// Ring of what compression by two still needs: FP32 sums and weights of the latest tokens.
std::int64_t compression_bytes(const Model& model, const Topology& topology,
                               std::int64_t backtracking) {
  constexpr std::int64_t kFloatBytes = 4;
  const std::int64_t tokens = 2 + std::max<std::int64_t>(0, backtracking - 1);
  std::int64_t bytes = 0;
  for (std::int64_t layer = 0; layer < model.num_layers; ++layer) {
    const bool keeps = model.compress_ratios[static_cast<std::size_t>(layer)] == 2 &&
                       Topology::is_source(topology.kv, layer);
    if (keeps) bytes += tokens * 2 * kLatentDim * kFloatBytes;
  }
  return bytes;
}

std::int64_t slot_bytes(const Model& model, std::int64_t ring_tokens, std::int64_t compression) {
  const std::int64_t layer = round_up(ring_tokens * kMxfp8BytesPerToken, kAlignment);
  const std::int64_t unit =
      model.all_layers() > 0 ? std::lcm(kAlignment, kMxfp8BytesPerToken) : std::int64_t{128};
  return round_up(layer * model.all_layers() + compression, unit);
}

}  // namespace

Checked<WindowRing> window_ring(const Model& model, const Variables& variables,
                                std::string_view stage) {
  WindowRing ring;
  KERNELPATH_TRY(backtracking, variables.backtracking_tokens(stage));
  ring.inference = model.sliding_window > 0 ? model.sliding_window + backtracking : 0;
  ring.stored = ring.inference;
  if (!variables.flag("PREFILL_STORE_EXTRA_STATE")) return ring;
  KERNELPATH_TRY(extra, variables.count("PREFILL_STORE_EXTRA_SIZE", stage));
  KERNELPATH_TRY(mode, variables.truncation_mode(stage));
  ring.stored += extra;
  if (mode != "off") {
    KERNELPATH_TRY(keep, variables.count("YOCO_PREFILL_KEEP_TOKENS", stage));
    ring.stored += keep;
  }
  return ring;
}

Checked<KvCache> size_kv_cache(const Model& model, const Topology& topology,
                               const Arguments& arguments, const Variables& variables,
                               std::int64_t block_size) {
  constexpr std::string_view kStage = "kv";
  if (model.head_dim != kLatentDim) return refuse(std::string(kStage), "kv-dim-not-512");
  KvCache cache;
  cache.block_size = block_size;
  cache.main_bytes_per_token = model.fp4_main_cache ? kFp4BytesPerToken : kMxfp8BytesPerToken;
  cache.index_bytes_per_token = index_bytes_per_token(model);
  lay_out_block(model, topology, cache);

  KERNELPATH_TRY(ring, window_ring(model, variables, kStage));
  KERNELPATH_TRY(backtracking, variables.backtracking_tokens(kStage));
  cache.swa_tokens_inference = ring.inference;
  cache.swa_tokens_per_slot = ring.stored;
  cache.swa_bytes_per_layer = round_up(ring.stored * kMxfp8BytesPerToken, kAlignment);
  cache.compress_state_bytes = compression_bytes(model, topology, backtracking);
  cache.state_bytes_per_slot = slot_bytes(model, ring.stored, cache.compress_state_bytes);
  cache.state_bytes_inference = slot_bytes(model, ring.inference, cache.compress_state_bytes);
  // Where the boundary lies behind the last backbone layer, the feature is off: all are stored.
  const bool drops = model.boundary < model.num_layers;
  cache.swa_layers_stored = drops ? model.boundary : model.all_layers();
  cache.swa_layers_dropped = model.all_layers() - cache.swa_layers_stored;
  cache.state_to_disk =
      cache.swa_layers_stored * round_up(ring.inference * kMxfp8BytesPerToken, kAlignment);
  KERNELPATH_TRY(ratio, variables.number("NUM_STATE_SLOTS_RATIO", kStage));
  const double slots = std::floor(static_cast<double>(arguments.max_num_seqs) * ratio);
  constexpr double kMostSlots = 1e15;
  cache.num_state_slots = std::abs(slots) < kMostSlots ? static_cast<std::int64_t>(slots) + 1 : 0;
  return cache;
}

KvParts block_parts(const KvCache& cache, const std::vector<BlockPart>& parts) {
  const std::int64_t data =
      cache.main_bytes_per_token == kFp4BytesPerToken ? kLatentDim / 2 : kLatentDim;
  KvParts out;
  for (const BlockPart& part : parts) {
    const std::int64_t stored = part.tokens * cache.main_bytes_per_token;
    out.values += part.tokens * kLatentDim;
    out.data_bytes += part.tokens * data;
    out.scale_bytes += stored - part.tokens * data;
    out.index_bytes += part.index_bytes;
    out.padding_bytes += part.bytes - part.index_bytes - stored;
  }
  return out;
}

std::int64_t blocks_per_sequence(std::int64_t runtime_model_len) {
  constexpr std::int64_t kTableUnit = 64;
  return round_up(ceil_div(runtime_model_len, kTokensPerBlock), kTableUnit);
}

Checked<bool> check_block_count(std::int64_t blocks, const Limits& limits) {
  constexpr std::string_view kStage = "init_cache";
  if (blocks <= 0) {
    return raise({.stage = std::string(kStage),
                  .type = "ValueError",
                  .text = "No available memory for the cache blocks. Try increasing "
                          "`gpu_memory_utilization` when initializing the engine.",
                  .rule = "no-cache-memory"});
  }
  constexpr double kUsableShare = 0.8;
  const auto capacity = static_cast<std::int64_t>(static_cast<double>(kTokensPerBlock) *
                                                  static_cast<double>(blocks) * kUsableShare);
  if (limits.runtime_model_len <= capacity) return true;
  return raise(
      {.stage = std::string(kStage),
       .type = "ValueError",
       .text = fmt::format("The model's runtime max seq len ({}, derived from max_model_len={}) is "
                           "larger than the maximum number of tokens that can be stored in KV "
                           "cache ({}). Try increasing `gpu_memory_utilization` or decreasing "
                           "`max_model_len` when initializing the engine.",
                           limits.runtime_model_len, limits.max_model_len, capacity),
       .rule = "model-len-above-cache"});
}

}  // namespace kernelpath::engines::deepinfer
