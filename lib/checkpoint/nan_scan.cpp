#include "checkpoint/nan_scan.h"

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

}  // namespace

bool holds_nan(std::string_view type, std::span<const std::byte> bytes) {
  if (type == "F32" || type == "f32")
    return any_above<std::uint32_t>(bytes, 0x7FFFFFFF, 0x7F800000);
  if (type == "BF16" || type == "bf16") return any_above<std::uint16_t>(bytes, 0x7FFF, 0x7F80);
  if (type == "F16" || type == "f16") return any_above<std::uint16_t>(bytes, 0x7FFF, 0x7C00);
  if (type == "F8_E4M3") return any_above<std::uint8_t>(bytes, 0x7F, 0x7E);
  if (type == "F8_E5M2") return any_above<std::uint8_t>(bytes, 0x7F, 0x7C);
  if (type == "F8_E8M0") return any_above<std::uint8_t>(bytes, 0xFF, 0xFE);
  return false;
}

}  // namespace kernelpath::checkpoint
