#pragma once

#include <bit>
#include <cstdint>
#include <limits>

// The narrow number formats of weights and KV caches as bit patterns, and their conversion to and
// from float. Every narrowing rounds to the nearest value, ties to the even code, and keeps NaN a
// NaN and the sign of zero.
//
//   bf16  float's upper half          e4m3  bias 7, no infinity, NaN 0x7f, ±448 (OCP "e4m3fn")
//   f16   IEEE binary16               e5m2  bias 15, infinities, ±57344
//   e2m1  ±{0, 0.5, 1, 1.5, 2, 3, 4, 6}, no NaN
//   e8m0  2^(code - 127), a scale; 255 is NaN
namespace kernelpath {

namespace narrow {

inline constexpr std::uint32_t kFloatNan = 0x7FC00000;

// 2^exponent for exponents of normal floats.
constexpr float power_of_two(int exponent) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << 23);
}

// The magnitude bits (without sign) of a finite `magnitude` in a format with `ExponentBits` and
// `MantissaBits`, whose exponent field may grow past its width: a code beyond the largest finite
// one means overflow. Rounds by the carry of an integer addition.
template <int ExponentBits, int MantissaBits>
constexpr std::uint32_t narrow_magnitude(std::uint32_t magnitude) {
  constexpr int kBias = (1 << (ExponentBits - 1)) - 1;
  constexpr int kDropped = 23 - MantissaBits;
  constexpr std::uint32_t kSmallestNormal = static_cast<std::uint32_t>(127 - kBias + 1) << 23;
  if (magnitude < kSmallestNormal) {
    // Adding the float whose last place is the smallest subnormal lets the FPU round.
    constexpr float kAligner = power_of_two(1 - kBias + kDropped);
    const float sum = std::bit_cast<float>(magnitude) + kAligner;
    return std::bit_cast<std::uint32_t>(sum) - std::bit_cast<std::uint32_t>(kAligner);
  }
  constexpr std::uint32_t kHalf = (1U << (kDropped - 1)) - 1;
  const std::uint32_t even = (magnitude >> kDropped) & 1U;
  const std::uint32_t rebias = static_cast<std::uint32_t>(127 - kBias) << 23;
  return (magnitude - rebias + kHalf + even) >> kDropped;
}

// The float of a finite code, given without its sign.
template <int ExponentBits, int MantissaBits>
constexpr float widen_magnitude(std::uint32_t magnitude) {
  constexpr int kBias = (1 << (ExponentBits - 1)) - 1;
  const std::uint32_t exponent = magnitude >> MantissaBits;
  if (exponent == 0) {
    return static_cast<float>(magnitude) * power_of_two(1 - kBias - MantissaBits);
  }
  const std::uint32_t rebias = static_cast<std::uint32_t>(127 - kBias) << 23;
  return std::bit_cast<float>((magnitude << (23 - MantissaBits)) + rebias);
}

constexpr float with_sign(float magnitude, bool negative) {
  return negative ? -magnitude : magnitude;
}

struct SignAndMagnitude {
  std::uint32_t sign = 0;  // 0 or 1
  std::uint32_t magnitude = 0;
  [[nodiscard]] constexpr bool nan() const { return magnitude > 0x7F800000; }
};

constexpr SignAndMagnitude split(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return {.sign = bits >> 31, .magnitude = bits & 0x7FFFFFFF};
}

}  // namespace narrow

constexpr float bf16_to_f32(std::uint16_t code) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(code) << 16);
}

constexpr std::uint16_t f32_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  // A NaN whose payload lies in the lower half must not become an infinity.
  if (narrow::split(value).nan()) return static_cast<std::uint16_t>(bits >> 16 | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1U)) >> 16);
}

constexpr float f16_to_f32(std::uint16_t code) {
  const std::uint32_t sign = static_cast<std::uint32_t>(code & 0x8000U) << 16;
  const std::uint32_t magnitude = code & 0x7FFFU;
  if (magnitude >= 0x7C00) {
    return std::bit_cast<float>(sign | 0x7F800000 | (magnitude & 0x3FFU) << 13);
  }
  return narrow::with_sign(narrow::widen_magnitude<5, 10>(magnitude), sign != 0);
}

constexpr std::uint16_t f32_to_f16(float value) {
  const narrow::SignAndMagnitude parts = narrow::split(value);
  std::uint32_t code = 0x7C00;
  if (parts.nan()) {
    code = 0x7E00 | (parts.magnitude >> 13 & 0x1FFU);
  } else if (parts.magnitude < 0x7F800000) {
    const std::uint32_t rounded = narrow::narrow_magnitude<5, 10>(parts.magnitude);
    code = rounded < 0x7C00 ? rounded : 0x7C00;
  }
  return static_cast<std::uint16_t>(parts.sign << 15 | code);
}

constexpr float e4m3_to_f32(std::uint8_t code) {
  const std::uint32_t magnitude = code & 0x7FU;
  if (magnitude == 0x7F) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(code & 0x80U) << 24 | narrow::kFloatNan);
  }
  return narrow::with_sign(narrow::widen_magnitude<4, 3>(magnitude), (code & 0x80U) != 0);
}

// What becomes of values beyond the largest finite one.
enum class Overflow : std::uint8_t {
  kSaturate,  // the largest finite value, for infinities too: what inference kernels do
  kIeee,      // infinity, or NaN where the format has none: a plain cast
};

constexpr std::uint8_t f32_to_e4m3(float value, Overflow overflow = Overflow::kSaturate) {
  const narrow::SignAndMagnitude parts = narrow::split(value);
  std::uint32_t code = 0x7F;
  if (!parts.nan()) {
    const std::uint32_t rounded =
        parts.magnitude < 0x7F800000 ? narrow::narrow_magnitude<4, 3>(parts.magnitude) : 0x7F;
    const std::uint32_t beyond = overflow == Overflow::kSaturate ? 0x7E : 0x7F;
    code = rounded <= 0x7E ? rounded : beyond;
  }
  return static_cast<std::uint8_t>(parts.sign << 7 | code);
}

constexpr float e5m2_to_f32(std::uint8_t code) {
  return f16_to_f32(static_cast<std::uint16_t>(code << 8));
}

constexpr std::uint8_t f32_to_e5m2(float value, Overflow overflow = Overflow::kSaturate) {
  const narrow::SignAndMagnitude parts = narrow::split(value);
  std::uint32_t code = 0x7E;
  if (!parts.nan()) {
    const std::uint32_t rounded =
        parts.magnitude < 0x7F800000 ? narrow::narrow_magnitude<5, 2>(parts.magnitude) : 0x7C;
    const std::uint32_t beyond = overflow == Overflow::kSaturate ? 0x7B : 0x7C;
    code = rounded <= 0x7B ? rounded : beyond;
  }
  return static_cast<std::uint8_t>(parts.sign << 7 | code);
}

// Of the lower four bits.
constexpr float e2m1_to_f32(std::uint8_t code) {
  return narrow::with_sign(narrow::widen_magnitude<2, 1>(code & 7U), (code & 8U) != 0);
}

// Saturates at ±6. The format has no NaN: a NaN becomes the value of its sign bit's 6.
constexpr std::uint8_t f32_to_e2m1(float value) {
  const narrow::SignAndMagnitude parts = narrow::split(value);
  constexpr std::uint32_t kSix = 0x40C00000;
  const std::uint32_t code =
      parts.magnitude < kSix ? narrow::narrow_magnitude<2, 1>(parts.magnitude) : 7;
  return static_cast<std::uint8_t>(parts.sign << 3 | code);
}

constexpr float e8m0_to_f32(std::uint8_t code) {
  if (code == 0xFF) return std::numeric_limits<float>::quiet_NaN();
  // 2^-127 is a subnormal float.
  if (code == 0) return std::bit_cast<float>(std::uint32_t{1} << 22);
  return std::bit_cast<float>(static_cast<std::uint32_t>(code) << 23);
}

// The scale of a block of 16 values in nvfp4, as an e4m3 code: its largest magnitude over 6 (the
// largest e2m1 value) and over the scale of the whole tensor. A block of zeros has scale 0.
constexpr std::uint8_t nvfp4_block_scale(float largest_magnitude, float tensor_scale) {
  return f32_to_e4m3(largest_magnitude / 6.0F / tensor_scale);
}

// The scale of a block of 32 values in mxfp4, as an e8m0 code: 2^(floor(log2(largest)) - 2), so
// that the largest lies in [4, 8) and saturates at 6. A block of zeros has the smallest scale.
constexpr std::uint8_t mxfp4_block_scale(float largest_magnitude) {
  const std::uint32_t exponent = std::bit_cast<std::uint32_t>(largest_magnitude) >> 23 & 0xFFU;
  return static_cast<std::uint8_t>(exponent > 2 ? exponent - 2 : 0);
}

}  // namespace kernelpath
