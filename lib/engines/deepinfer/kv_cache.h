#pragma once

#include "engines/deepinfer/arguments.h"
#include "engines/deepinfer/fault.h"
#include "engines/deepinfer/model.h"
#include "engines/deepinfer/topology.h"
#include "engines/deepinfer/variables.h"
#include "engines/resolution.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace kernelpath::engines::deepinfer {

inline constexpr std::int64_t kTokensPerBlock = 128;
inline constexpr std::int64_t kMxfp8BytesPerToken = 528;  // 512 E4M3 and 16 UE8M0 scales
inline constexpr std::int64_t kFp4BytesPerToken = 288;    // 512 E2M1 in 256 bytes, 32 E4M3 scales

// Where a layer's part of a block lies, in bytes.
struct BlockPart {
  std::int64_t layer = 0;
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  std::int64_t index_bytes = 0;  // of them, of the indexer's keys
  std::int64_t tokens = 0;       // compressed ones of the main cache; 0: it has none
};

// Sizes in bytes of one rank: nothing is divided by any parallel size. Source: cache_engine.py.
struct KvCache {
  std::int64_t block_size = kTokensPerBlock;
  std::int64_t bytes_per_block = 0;
  std::vector<BlockPart> layout;  // of the layers that own a part of the paged cache
  std::int64_t padding = 0;
  std::int64_t main_bytes_per_token = 0;
  std::int64_t index_bytes_per_token = 0;
  std::int64_t swa_bytes_per_token = kMxfp8BytesPerToken;
  std::int64_t num_state_slots = 0;
  std::int64_t state_bytes_per_slot = 0;
  std::int64_t state_bytes_inference = 0;  // without what is kept for restoring a prefix
  std::int64_t state_to_disk = 0;
  std::int64_t swa_layers_stored = 0;
  std::int64_t swa_layers_dropped = 0;
  std::int64_t swa_tokens_per_slot = 0;
  std::int64_t swa_tokens_inference = 0;
  std::int64_t swa_bytes_per_layer = 0;
  std::int64_t compress_state_bytes = 0;
};

// Tokens of a layer's window ring, with and without what is kept for restoring a prefix.
struct WindowRing {
  std::int64_t inference = 0;
  std::int64_t stored = 0;
};
Checked<WindowRing> window_ring(const Model& model, const Variables& variables,
                                std::string_view stage);

// Fault "kv-dim-not-512".
Checked<KvCache> size_kv_cache(const Model& model, const Topology& topology,
                               const Arguments& arguments, const Variables& variables,
                               std::int64_t block_size);

// Blocks of a sequence's table: those of the runtime length, rounded up to 64.
std::int64_t blocks_per_sequence(std::int64_t runtime_model_len);

// What a block keeps in the layers of `parts`, by parts; padding of the whole block aside.
KvParts block_parts(const KvCache& cache, const std::vector<BlockPart>& parts);

// What start-up checks once the number of blocks is known.
Checked<bool> check_block_count(std::int64_t blocks, const Limits& limits);

}  // namespace kernelpath::engines::deepinfer
