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
  kTurboQuant,  // until 0.32 a class of its own
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

// The class inherits from FullAttentionSpec: it keeps every token.
bool is_full_attention(SpecKind kind);
bool is_mla(SpecKind kind);

// Bytes that the distance between two blocks is a multiple of: `size`, or whole kernel blocks of
// at most `size` tokens (since 0.33).
struct StrideAlignment {
  std::int64_t size = 1;
  bool kernel_blocks = false;
  friend bool operator==(const StrideAlignment&, const StrideAlignment&) = default;
};

// The cache format of one layer. Layers with equal specs can share a group.
struct KvSpec {
  SpecKind kind = SpecKind::kFull;
  std::int64_t block_size = 0;  // tokens
  std::int64_t num_kv_heads = 0;
  std::int64_t head_size = 0;
  std::int64_t head_size_v = 0;
  std::string storage_dtype = {};  // of an element: "bfloat16", "uint8", …
  std::string quant_mode = {};     // "NONE", "FP8_PER_TENSOR", …
  // A page: as many slots as KV heads unless the backend packs them otherwise, and the bytes that
  // one slot keeps of one state.
  std::int64_t head_slots = 0;
  std::int64_t content_bytes = 0;
  std::int64_t tokens_per_state = 1;  // tokens that are stored as one
  std::optional<std::int64_t> page_size_padded = {};
  std::int64_t page_alignment = 1;  // bytes that a page is padded to a multiple of
  std::optional<StrideAlignment> stride_alignment = {};
  bool packed = false;                   // the layer or its backend chose content_bytes
  bool indexes_by_block_stride = false;  // until 0.32: its kernels take a padded page
  std::optional<std::int64_t> window = {};
  std::optional<std::int64_t> chunk = {};
  std::optional<std::int64_t> rswa_window = {};
  std::optional<std::int64_t> sink_length = {};
  // Multi-head latent attention: the name that decides on its format (empty: none), and what else
  // tells its layers apart.
  std::string cache_dtype = {};
  std::string model_version = {};
  std::string cache_role = {};
  // State layers: shapes and element types.
  std::vector<std::vector<std::int64_t>> state_shapes = {};
  std::vector<std::string> state_dtypes = {};
  std::string state_kind = {};
  std::int64_t speculative_blocks = 0;

  friend bool operator==(const KvSpec&, const KvSpec&) = default;

  [[nodiscard]] bool is_state() const { return kind == SpecKind::kMamba; }
  // States that a block of so many tokens keeps.
  [[nodiscard]] std::int64_t states_of(std::int64_t tokens) const;
  // Bytes of a page without and with its padding.
  [[nodiscard]] std::int64_t unpadded_page_bytes() const;
  [[nodiscard]] std::int64_t page_bytes() const;
};

// Pads the page to its alignment, where it is no multiple of it already.
void align_page(KvSpec& spec);

// Bytes of one element: "bfloat16" → 2. 0 for a name that no cache is kept in.
std::int64_t dtype_bytes(std::string_view dtype);

// Bytes of the fp4 data and fp8 scales of one nvfp4 head.
std::int64_t nvfp4_head_bytes(std::int64_t head_size);

// Bytes of one KV head's slot of a TurboQuant preset: keys and values with their norms, rounded up
// to even. 0 for another name. Source: layers/quantization/turboquant/config.py.
std::int64_t turboquant_slot_bytes(std::string_view kv_dtype, std::int64_t head_size);

}  // namespace kernelpath::engines::vllm
