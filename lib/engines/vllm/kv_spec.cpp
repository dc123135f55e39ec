#include "engines/vllm/kv_spec.h"

#include <algorithm>
#include <array>

namespace kernelpath::engines::vllm {
namespace {

struct DtypeBytes {
  std::string_view name;
  std::int64_t bytes;
};

constexpr auto kDtypes = std::to_array<DtypeBytes>({
    {"float16", 2},
    {"bfloat16", 2},
    {"float32", 4},
    {"uint8", 1},
    {"int8", 1},
    {"float8_e4m3fn", 1},
    {"float8_e5m2", 1},
});

// Bits of an element of keys and values.
struct TurboQuantPreset {
  std::string_view name;
  std::int64_t key_bits;
  std::int64_t value_bits;
};

constexpr auto kPresets = std::to_array<TurboQuantPreset>({
    {"turboquant_k8v4", 8, 4},
    {"turboquant_4bit_nc", 4, 4},
    {"turboquant_k3v4_nc", 3, 4},
    {"turboquant_3bit_nc", 3, 3},
});

constexpr std::int64_t kFp8KeyBits = 8;       // kept as they are, without a norm
constexpr std::int64_t kKeyNormBytes = 2;     // fp16
constexpr std::int64_t kValueScaleBytes = 4;  // fp16 scale and zero point

std::int64_t bytes_of_bits(std::int64_t bits) { return (bits + 7) / 8; }

}  // namespace

std::string_view spec_class_name(SpecKind kind) {
  switch (kind) {
    case SpecKind::kFull:
      return "FullAttentionSpec";
    case SpecKind::kTurboQuant:
      return "TQFullAttentionSpec";
    case SpecKind::kMla:
      return "MLAAttentionSpec";
    case SpecKind::kSinkFull:
      return "SinkFullAttentionSpec";
    case SpecKind::kRswa:
      return "RSWASpec";
    case SpecKind::kSliding:
      return "SlidingWindowSpec";
    case SpecKind::kSlidingMla:
      return "SlidingWindowMLASpec";
    case SpecKind::kChunked:
      return "ChunkedLocalAttentionSpec";
    case SpecKind::kCross:
      return "CrossAttentionSpec";
    case SpecKind::kMamba:
      return "MambaSpec";
  }
  return {};
}

bool is_full_attention(SpecKind kind) { return kind <= SpecKind::kRswa; }

bool is_mla(SpecKind kind) { return kind == SpecKind::kMla || kind == SpecKind::kSlidingMla; }

std::int64_t KvSpec::states_of(std::int64_t tokens) const {
  return is_state() ? 1 : tokens / std::max<std::int64_t>(tokens_per_state, 1);
}

std::int64_t KvSpec::unpadded_page_bytes() const {
  if (!is_state()) return head_slots * states_of(block_size) * content_bytes;
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < state_shapes.size() && i < state_dtypes.size(); ++i) {
    std::int64_t elements = 1;
    for (const std::int64_t axis : state_shapes[i]) elements *= axis;
    bytes += elements * dtype_bytes(state_dtypes[i]);
  }
  return bytes;
}

std::int64_t KvSpec::page_bytes() const {
  return page_size_padded ? *page_size_padded : unpadded_page_bytes();
}

void align_page(KvSpec& spec) {
  const std::int64_t page = spec.unpadded_page_bytes();
  const std::int64_t above = page % spec.page_alignment;
  if (above != 0) spec.page_size_padded = page + spec.page_alignment - above;
}

std::int64_t dtype_bytes(std::string_view dtype) {
  const auto* found = std::ranges::find(kDtypes, dtype, &DtypeBytes::name);
  return found == kDtypes.end() ? 0 : found->bytes;
}

std::int64_t nvfp4_head_bytes(std::int64_t head_size) { return head_size / 2 + head_size / 16; }

std::int64_t turboquant_slot_bytes(std::string_view kv_dtype, std::int64_t head_size) {
  const auto* preset = std::ranges::find(kPresets, kv_dtype, &TurboQuantPreset::name);
  if (preset == kPresets.end()) return 0;
  const std::int64_t key = preset->key_bits == kFp8KeyBits
                               ? head_size
                               : bytes_of_bits(head_size * preset->key_bits) + kKeyNormBytes;
  const std::int64_t value = bytes_of_bits(head_size * preset->value_bits) + kValueScaleBytes;
  const std::int64_t slot = key + value;
  return slot + slot % 2;
}

}  // namespace kernelpath::engines::vllm
