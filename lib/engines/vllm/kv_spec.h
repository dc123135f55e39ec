#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::vllm {

// What a layer keeps, by the engine's class of that name.
// Source: vllm/v1/kv_cache_interface.py.
enum class SpecKind : std::uint8_t {
  kFull,
  kTurboQuant,  // until 0.33 a class of its own
  kMla,
  kSinkFull,
  kRswa,
  kSliding,
  kSlidingMla,
  kChunked,
  kCross,
  kMamba,
};
std::string_view spec_class_name(SpecKind kind);  // "FullAttentionSpec", …

// The cache format of one layer. Two layers with equal specs share a group.
struct KvSpec {
  SpecKind kind = SpecKind::kFull;
  std::int64_t block_size = 0;  // tokens
  std::int64_t num_kv_heads = 0;
  std::int64_t head_size = 0;
  std::int64_t head_size_v = 0;
  std::string storage_dtype = {};  // of an element: "bfloat16", "uint8", …
  std::string quant_mode = {};     // "NONE", "FP8_PER_TENSOR", …
  std::optional<std::int64_t> window = {};
  std::optional<std::int64_t> chunk = {};
  std::optional<std::int64_t> rswa_window = {};
  std::optional<std::int64_t> sink_length = {};
  std::string cache_dtype = {};       // MLA: the name that decides on its format
  std::int64_t tokens_per_state = 1;  // tokens that are stored as one
  std::string model_version = {};
  // Pages that are larger than their content.
  std::optional<std::int64_t> page_size_padded = {};
  bool indexes_by_block_stride = false;  // its kernels take a padded page
  // What the backend packs itself: slots of a page instead of KV heads, bytes of one slot.
  std::optional<std::int64_t> head_slots = {};
  std::optional<std::int64_t> content_bytes = {};
  // State layers: shapes and element types.
  std::vector<std::vector<std::int64_t>> state_shapes = {};
  std::vector<std::string> state_dtypes = {};
  std::string state_kind = {};
  std::int64_t speculative_blocks = 0;

  friend bool operator==(const KvSpec&, const KvSpec&) = default;

  // Tokens of a block as they are stored.
  [[nodiscard]] std::int64_t states_per_block() const;
  // Bytes of a page without the padding.
  [[nodiscard]] std::int64_t unpadded_page_bytes() const;
  // Bytes of a page.
  [[nodiscard]] std::int64_t page_bytes() const;
};

// Bytes of one element: "bfloat16" → 2. 0 for a name that no cache is kept in.
std::int64_t dtype_bytes(std::string_view dtype);

}  // namespace kernelpath::engines::vllm
