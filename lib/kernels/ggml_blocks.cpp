#include "kernels/ggml_blocks.h"

#include "base/float_types.h"

#include <cstring>

namespace kernelpath::kernels {
namespace {

unsigned byte_at(const std::byte* block, std::int64_t index) {
  return std::to_integer<unsigned>(block[index]);
}

float f16_at(const std::byte* block, std::int64_t offset) {
  std::uint16_t code = 0;
  std::memcpy(&code, block + offset, sizeof(code));
  return f16_to_f32(code);
}

// What a code of a sub-block of q4_K and q5_K is multiplied by, and what is taken off.
struct SubBlock {
  float step = 0.0F;
  float minimum = 0.0F;
};

SubBlock sub_block(const std::byte* block, std::int64_t sub) {
  unsigned scale = 0;
  unsigned minimum = 0;
  if (sub < 4) {
    scale = byte_at(block, 4 + sub) & 63U;
    minimum = byte_at(block, 8 + sub) & 63U;
  } else {
    scale = (byte_at(block, 8 + sub) & 15U) | (byte_at(block, sub) >> 6U << 4U);
    minimum = (byte_at(block, 8 + sub) >> 4U) | (byte_at(block, 4 + sub) >> 6U << 4U);
  }
  return {.step = f16_at(block, 0) * static_cast<float>(scale),
          .minimum = f16_at(block, 2) * static_cast<float>(minimum)};
}

unsigned half_of(unsigned byte, bool high) { return high ? byte >> 4U : byte & 15U; }

// The half of column `inside` of a super-block whose codes begin at `codes`.
unsigned k_code(const std::byte* codes, std::int64_t inside) {
  return half_of(byte_at(codes, inside / 64 * 32 + inside % 32), inside / 32 % 2 == 1);
}

}  // namespace

float q5_0_value(const std::byte* row, std::int64_t column) {
  const std::byte* const block = row + column / 32 * kQ5BlockBytes;
  const std::int64_t inside = column % 32;
  const unsigned fifth = byte_at(block, 2 + inside / 8) >> static_cast<unsigned>(inside % 8) & 1U;
  const unsigned low = half_of(byte_at(block, 6 + inside % 16), inside >= 16);
  return f16_at(block, 0) * (static_cast<float>(low | fifth << 4U) - 16.0F);
}

float q4_k_value(const std::byte* row, std::int64_t column) {
  const std::byte* const block = row + column / kSuperBlockCols * kQ4KBytes;
  const std::int64_t inside = column % kSuperBlockCols;
  const SubBlock sub = sub_block(block, inside / 32);
  return sub.step * static_cast<float>(k_code(block + 16, inside)) - sub.minimum;
}

float q5_k_value(const std::byte* row, std::int64_t column) {
  const std::byte* const block = row + column / kSuperBlockCols * kQ5KBytes;
  const std::int64_t inside = column % kSuperBlockCols;
  const SubBlock sub = sub_block(block, inside / 32);
  const unsigned fifth =
      byte_at(block, 16 + inside % 32) >> static_cast<unsigned>(inside / 32) & 1U;
  const unsigned code = k_code(block + 48, inside) | fifth << 4U;
  return sub.step * static_cast<float>(code) - sub.minimum;
}

float q6_k_value(const std::byte* row, std::int64_t column) {
  const std::byte* const block = row + column / kSuperBlockCols * kQ6KBytes;
  const std::int64_t inside = column % kSuperBlockCols;
  const std::int64_t half = inside / 128;
  const std::int64_t quarter = inside / 32 % 4;
  const unsigned low = half_of(byte_at(block, half * 64 + inside % 64), quarter >= 2);
  const unsigned upper =
      byte_at(block, 128 + half * 32 + inside % 32) >> static_cast<unsigned>(2 * quarter) & 3U;
  const auto scale = static_cast<std::int8_t>(byte_at(block, 192 + inside / 16));
  const float step = f16_at(block, 208) * static_cast<float>(scale);
  return step * (static_cast<float>(low | upper << 4U) - 32.0F);
}

}  // namespace kernelpath::kernels
