#include "base/float_types.h"
#include "json/document.h"
#include "recorded_document.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

// lib/base/float_types.h against what other implementations of the formats recorded.
namespace kernelpath {
namespace {

const json::Document& recorded() {
  static const json::Document document =
      testing::recorded_document(KERNELPATH_GOLDEN_DIR "/attention/number_formats.json");
  return document;
}

const json::Value& member(const json::Value& value, std::string_view key) {
  const json::Value* found = value.find(key);
  if (found == nullptr) {
    ADD_FAILURE() << "no " << key;
    std::abort();
  }
  return *found;
}

// Numbers as they are; "nan", "inf" and "-inf" are spelled as strings.
float number(const json::Value& value) {
  if (value.is_string()) return std::strtof(value.as_string().c_str(), nullptr);
  return static_cast<float>(value.as_double());
}

float from_bits(const json::Value& value) {
  return std::bit_cast<float>(
      static_cast<std::uint32_t>(std::strtoul(value.as_string().c_str(), nullptr, 16)));
}

void expect_same(float got, float wanted) {
  if (std::isnan(wanted)) {
    EXPECT_TRUE(std::isnan(got));
  } else {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(got), std::bit_cast<std::uint32_t>(wanted)) << wanted;
  }
}

TEST(NumberFormats, RecordedCodes_Widen) {
  const auto expect_all = [](std::string_view format, float (*widen)(std::uint8_t)) {
    const auto values = member(member(recorded().root, format), "decode").items();
    for (std::size_t code = 0; code < values.size(); ++code) {
      SCOPED_TRACE(code);
      expect_same(widen(static_cast<std::uint8_t>(code)), number(values[code]));
    }
    return values.size();
  };
  EXPECT_EQ(expect_all("e4m3fn", e4m3_to_f32), 256U);
  EXPECT_EQ(expect_all("e5m2", e5m2_to_f32), 256U);
  EXPECT_EQ(expect_all("e2m1", e2m1_to_f32), 16U);
  EXPECT_GE(expect_all("e8m0", e8m0_to_f32), 255U);
}

TEST(NumberFormats, RecordedValues_NarrowToFp8) {
  for (const json::Value& entry : member(member(recorded().root, "e4m3fn"), "encode").items()) {
    const float value = from_bits(member(entry, "bits"));
    EXPECT_EQ(f32_to_e4m3(value, Overflow::kIeee), member(entry, "nearest_even").as_integer());
    EXPECT_EQ(f32_to_e4m3(value), member(entry, "saturate").as_integer()) << value;
  }
  for (const json::Value& entry : member(member(recorded().root, "e5m2"), "encode").items()) {
    const float value = from_bits(member(entry, "bits"));
    EXPECT_EQ(f32_to_e5m2(value, Overflow::kIeee), member(entry, "nearest_even").as_integer());
    EXPECT_EQ(f32_to_e5m2(value), member(entry, "saturate").as_integer()) << value;
  }
}

TEST(NumberFormats, RecordedValues_NarrowToE2m1) {
  for (const json::Value& entry : member(member(recorded().root, "e2m1"), "encode").items()) {
    const float value = from_bits(member(entry, "bits"));
    EXPECT_EQ(f32_to_e2m1(value), member(entry, "code").as_integer()) << value;
  }
}

TEST(NumberFormats, RecordedValues_NarrowToHalves) {
  for (const json::Value& entry : member(recorded().root, "bfloat16_float16").items()) {
    const float value = from_bits(member(entry, "bits"));
    const auto wanted = [&entry](std::string_view format) {
      return std::strtoul(member(entry, format).as_string().c_str(), nullptr, 16);
    };
    EXPECT_EQ(f32_to_bf16(value), wanted("bfloat16")) << value;
    EXPECT_EQ(f32_to_f16(value), wanted("float16")) << value;
  }
}

float largest_magnitude(std::span<const json::Value> values) {
  float largest = 0;
  for (const json::Value& value : values) largest = std::max(largest, std::abs(number(value)));
  return largest;
}

// A block of `inputs` with the scale `scale`: its recorded codes, and what they read as.
void expect_block(const json::Value& example, std::size_t row, std::size_t first, std::size_t count,
                  float scale) {
  const auto inputs = member(example, "input").items()[row].items().subspan(first, count);
  const auto codes = member(example, "codes").items()[row].items().subspan(first, count);
  const auto values = member(example, "dequantized").items()[row].items().subspan(first, count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t code = f32_to_e2m1(scale == 0 ? 0.0F : number(inputs[i]) / scale);
    EXPECT_EQ(code, codes[i].as_integer()) << number(inputs[i]);
    expect_same(e2m1_to_f32(code) * scale, number(values[i]));
  }
}

TEST(NumberFormats, RecordedNvfp4Blocks_QuantiseToTheirCodes) {
  for (const json::Value& example : member(member(recorded().root, "nvfp4"), "examples").items()) {
    const float tensor_scale = number(member(example, "global_scale"));
    const auto rows = member(example, "input").items();
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const auto scales = member(example, "block_scale_codes").items()[row].items();
      for (std::size_t block = 0; block < scales.size(); ++block) {
        const auto inputs = rows[row].items().subspan(block * 16, 16);
        const std::uint8_t scale = nvfp4_block_scale(largest_magnitude(inputs), tensor_scale);
        EXPECT_EQ(scale, scales[block].as_integer());
        expect_block(example, row, block * 16, 16, e4m3_to_f32(scale) * tensor_scale);
      }
    }
  }
}

TEST(NumberFormats, RecordedMxfp4Blocks_QuantiseToTheirCodes) {
  for (const json::Value& example : member(member(recorded().root, "mxfp4"), "examples").items()) {
    const auto rows = member(example, "input").items();
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const auto scales = member(example, "scale_codes").items()[row].items();
      for (std::size_t block = 0; block < scales.size(); ++block) {
        const auto inputs = rows[row].items().subspan(block * 32, 32);
        const std::uint8_t scale = mxfp4_block_scale(largest_magnitude(inputs));
        EXPECT_EQ(scale, scales[block].as_integer());
        expect_block(example, row, block * 32, 32, e8m0_to_f32(scale));
      }
    }
  }
}

}  // namespace
}  // namespace kernelpath
