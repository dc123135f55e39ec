#include "base/float_types.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

// What the formats' definitions say, over all codes. The recorded values of other implementations
// are compared in tests/golden/number_formats_test.cpp.
namespace kernelpath {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A format by its definition, in double.
struct Format {
  int exponent_bits = 0;
  int mantissa_bits = 0;
  bool infinity = false;  // the largest exponent holds infinity and NaN, as in IEEE 754
  [[nodiscard]] std::uint32_t sign() const { return 1U << (exponent_bits + mantissa_bits); }
};

double value_of(Format format, std::uint32_t magnitude) {
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const auto exponent = static_cast<int>(magnitude >> format.mantissa_bits);
  const double fraction =
      (magnitude & ((1U << format.mantissa_bits) - 1)) * std::ldexp(1.0, -format.mantissa_bits);
  if (format.infinity && exponent == (1 << format.exponent_bits) - 1) {
    return fraction == 0 ? kInfinity : std::numeric_limits<double>::quiet_NaN();
  }
  return exponent == 0 ? std::ldexp(fraction, 1 - bias)
                       : std::ldexp(1.0 + fraction, exponent - bias);
}

constexpr Format kF16{.exponent_bits = 5, .mantissa_bits = 10, .infinity = true};
constexpr Format kBf16{.exponent_bits = 8, .mantissa_bits = 7, .infinity = true};
constexpr Format kE4m3{.exponent_bits = 4, .mantissa_bits = 3};
constexpr Format kE5m2{.exponent_bits = 5, .mantissa_bits = 2, .infinity = true};
constexpr Format kE2m1{.exponent_bits = 2, .mantissa_bits = 1};

// Every code widens to its defined value, of either sign, and narrows back to itself.
template <class Code, class Widen, class Narrow>
void expect_exact_codes(Format format, std::uint32_t codes, Widen widen, Narrow narrow) {
  for (std::uint32_t magnitude = 0; magnitude < codes; ++magnitude) {
    for (const std::uint32_t sign : {0U, format.sign()}) {
      const auto code = static_cast<Code>(magnitude | sign);
      const auto wanted = static_cast<float>(value_of(format, magnitude));
      const float got = widen(code);
      ASSERT_EQ(std::bit_cast<std::uint32_t>(got),
                std::bit_cast<std::uint32_t>(sign != 0 ? -wanted : wanted))
          << "code " << static_cast<int>(code);
      ASSERT_EQ(narrow(got), code);
    }
  }
}

// Between every pair of neighbouring finite codes: the middle goes to the even code, the floats
// just beside the middle to their nearest.
template <class Code, class Narrow>
void expect_nearest_even(Format format, std::uint32_t codes, Narrow narrow) {
  for (std::uint32_t low = 0; low + 1 < codes; ++low) {
    const double middle = (value_of(format, low) + value_of(format, low + 1)) / 2;
    const auto at = static_cast<float>(middle);
    ASSERT_EQ(static_cast<double>(at), middle) << "a float holds every middle";
    const std::uint32_t even = low % 2 == 0 ? low : low + 1;
    ASSERT_EQ(narrow(at), static_cast<Code>(even)) << low;
    ASSERT_EQ(narrow(std::nextafter(at, 0.0F)), static_cast<Code>(low)) << low;
    ASSERT_EQ(narrow(std::nextafter(at, kInfinity)), static_cast<Code>(low + 1)) << low;
    ASSERT_EQ(narrow(-at), static_cast<Code>(even | format.sign())) << low;
  }
}

TEST(Bf16, EveryCode_WidensAndNarrowsExactly) {
  expect_exact_codes<std::uint16_t>(kBf16, 0x7F81, bf16_to_f32, f32_to_bf16);
  expect_nearest_even<std::uint16_t>(kBf16, 0x7F80, f32_to_bf16);
}

TEST(Bf16, NanWithLowPayload_StaysNan) {
  const auto nan = std::bit_cast<float>(std::uint32_t{0x7F800001});
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(nan))));
  for (std::uint32_t code = 0x7F81; code < 0x8000; ++code) {
    ASSERT_TRUE(std::isnan(bf16_to_f32(static_cast<std::uint16_t>(code))));
  }
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7F80);
}

TEST(F16, EveryCode_WidensAndNarrowsExactly) {
  expect_exact_codes<std::uint16_t>(kF16, 0x7C01, f16_to_f32, f32_to_f16);
  expect_nearest_even<std::uint16_t>(kF16, 0x7C00, f32_to_f16);
}

TEST(F16, BeyondTheLargest_IsInfinity) {
  EXPECT_EQ(f32_to_f16(65504.0F), 0x7BFF);
  EXPECT_EQ(f32_to_f16(std::nextafter(65520.0F, 0.0F)), 0x7BFF);
  EXPECT_EQ(f32_to_f16(65520.0F), 0x7C00);
  EXPECT_EQ(f32_to_f16(-1e30F), 0xFC00);
  EXPECT_EQ(f32_to_f16(kInfinity), 0x7C00);
}

TEST(F16, Nan_StaysNan) {
  for (std::uint32_t code = 0x7C01; code < 0x8000; ++code) {
    const float value = f16_to_f32(static_cast<std::uint16_t>(code));
    ASSERT_TRUE(std::isnan(value));
    ASSERT_TRUE(std::isnan(f16_to_f32(f32_to_f16(value))));
  }
}

TEST(E4m3, EveryCode_WidensAndNarrowsExactly) {
  const auto narrow = [](float value) { return f32_to_e4m3(value); };
  expect_exact_codes<std::uint8_t>(kE4m3, 0x7F, e4m3_to_f32, narrow);
  expect_nearest_even<std::uint8_t>(kE4m3, 0x7F, narrow);
}

TEST(E4m3, TheTwoNans_AreNotNumbers) {
  EXPECT_TRUE(std::isnan(e4m3_to_f32(0x7F)));
  EXPECT_TRUE(std::isnan(e4m3_to_f32(0xFF)));
  EXPECT_EQ(f32_to_e4m3(std::numeric_limits<float>::quiet_NaN()), 0x7F);
  EXPECT_EQ(f32_to_e4m3(-std::numeric_limits<float>::quiet_NaN()), 0xFF);
}

TEST(E4m3, BeyondTheLargest_SaturatesOrIsNan) {
  for (const float value : {464.5F, 1e30F, kInfinity}) {
    EXPECT_EQ(f32_to_e4m3(value), 0x7E);
    EXPECT_EQ(f32_to_e4m3(-value), 0xFE);
    EXPECT_EQ(f32_to_e4m3(value, Overflow::kIeee), 0x7F);
  }
  EXPECT_EQ(f32_to_e4m3(464.0F, Overflow::kIeee), 0x7E) << "a tie, and 0x7e is even";
}

TEST(E5m2, EveryCode_WidensAndNarrowsExactly) {
  const auto narrow = [](float value) { return f32_to_e5m2(value, Overflow::kIeee); };
  expect_exact_codes<std::uint8_t>(kE5m2, 0x7D, e5m2_to_f32, narrow);
  expect_nearest_even<std::uint8_t>(kE5m2, 0x7C, narrow);
}

TEST(E5m2, BeyondTheLargest_SaturatesOrIsInfinite) {
  for (const float value : {61440.0F, 1e30F, kInfinity}) {
    EXPECT_EQ(f32_to_e5m2(value), 0x7B);
    EXPECT_EQ(f32_to_e5m2(-value), 0xFB);
    EXPECT_EQ(f32_to_e5m2(value, Overflow::kIeee), 0x7C);
  }
  EXPECT_TRUE(std::isnan(e5m2_to_f32(f32_to_e5m2(std::numeric_limits<float>::quiet_NaN()))));
}

TEST(E2m1, EveryCode_WidensAndNarrowsExactly) {
  expect_exact_codes<std::uint8_t>(kE2m1, 8, e2m1_to_f32, f32_to_e2m1);
  expect_nearest_even<std::uint8_t>(kE2m1, 8, f32_to_e2m1);
}

TEST(E2m1, BeyondSix_Saturates) {
  for (const float value : {6.0F, 7.0F, 1e30F, kInfinity}) {
    EXPECT_EQ(f32_to_e2m1(value), 7);
    EXPECT_EQ(f32_to_e2m1(-value), 15);
  }
}

TEST(E8m0, EveryCode_IsItsPowerOfTwo) {
  for (int code = 0; code < 255; ++code) {
    ASSERT_EQ(e8m0_to_f32(static_cast<std::uint8_t>(code)),
              static_cast<float>(std::ldexp(1.0, code - 127)));
  }
  EXPECT_TRUE(std::isnan(e8m0_to_f32(255)));
}

TEST(Mxfp4Scale, LargestMagnitude_LiesInFourToEight) {
  for (const float largest : {1.0F, 3.999F, 4.0F, 6.0F, 1e-30F, 3e38F}) {
    const float scaled = largest / e8m0_to_f32(mxfp4_block_scale(largest));
    EXPECT_GE(scaled, 4.0F);
    EXPECT_LT(scaled, 8.0F);
  }
  EXPECT_EQ(mxfp4_block_scale(0.0F), 0);
}

TEST(Nvfp4Scale, BlockOfZeros_HasScaleZero) {
  EXPECT_EQ(nvfp4_block_scale(0.0F, 1.0F), 0);
  EXPECT_EQ(e4m3_to_f32(nvfp4_block_scale(6.0F * 448.0F, 1.0F)), 448.0F);
}

}  // namespace
}  // namespace kernelpath
