#include "checkpoint/nan_scan.h"

#include "checkpoint/ggml_type.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace kernelpath::checkpoint {
namespace {

// Counts codes whose magnitude bits lie above those of infinity; written so that it vectorises.
template <class T>
bool any_above(std::span<const std::byte> bytes, T magnitude_mask, T infinity) {
  constexpr std::size_t kBlock = 4096;
  for (std::size_t first = 0; first < bytes.size(); first += kBlock) {
    const std::size_t last = first + kBlock < bytes.size() ? first + kBlock : bytes.size();
    unsigned found = 0;
    for (std::size_t i = first; i + sizeof(T) <= last; i += sizeof(T)) {
      T code{};
      std::memcpy(&code, bytes.data() + i, sizeof(T));
      found |= static_cast<unsigned>(static_cast<T>(code & magnitude_mask) > infinity);
    }
    if (found != 0) return true;
  }
  return false;
}

// The formats of blocks whose scales lie as any_nan_scale() looks for them.
bool is_scanned(std::string_view type) {
  constexpr std::array<std::string_view, 6> kTypes = {"q8_0", "q4_0", "q5_0",
                                                      "q4_K", "q5_K", "q6_K"};
  return std::ranges::find(kTypes, type) != kTypes.end();
}

// Of ggml's blocks, whose scales alone can be NaN.
bool any_nan_scale(const GgmlType& type, std::span<const std::byte> bytes) {
  const auto block_bytes = static_cast<std::size_t>(type.bytes);
  // q6_K ends with its scale, the others begin with it; q4_K and q5_K have a second one, of minima.
  const std::size_t first = type.name == "q6_K" ? block_bytes - 2 : 0;
  const std::size_t count = type.name == "q4_K" || type.name == "q5_K" ? 2 : 1;
  for (std::size_t at = 0; at + block_bytes <= bytes.size(); at += block_bytes) {
    if (any_above<std::uint16_t>(bytes.subspan(at + first, 2 * count), 0x7FFF, 0x7C00)) return true;
  }
  return false;
}

}  // namespace

bool holds_nan(std::string_view type, std::span<const std::byte> bytes) {
  if (type == "F32" || type == "f32")
    return any_above<std::uint32_t>(bytes, 0x7FFFFFFF, 0x7F800000);
  if (type == "BF16" || type == "bf16") return any_above<std::uint16_t>(bytes, 0x7FFF, 0x7F80);
  if (type == "F16" || type == "f16") return any_above<std::uint16_t>(bytes, 0x7FFF, 0x7C00);
  if (type == "F8_E4M3") return any_above<std::uint8_t>(bytes, 0x7F, 0x7E);
  if (type == "F8_E5M2") return any_above<std::uint8_t>(bytes, 0x7F, 0x7C);
  if (type == "F8_E8M0") return any_above<std::uint8_t>(bytes, 0xFF, 0xFE);
  const GgmlType* const block = find_ggml_type(type);
  return block != nullptr && is_scanned(block->name) && any_nan_scale(*block, bytes);
}

std::int64_t nan_scan_unit(std::string_view type) {
  const GgmlType* const block = find_ggml_type(type);
  return block != nullptr && is_scanned(block->name) ? block->bytes : 1;
}

}  // namespace kernelpath::checkpoint
