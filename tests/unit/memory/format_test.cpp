#include "memory/format.h"

#include "models.h"

#include <gtest/gtest.h>

#include <limits>

namespace kernelpath::memory {
namespace {

std::int64_t bytes_of(std::string_view algo, std::int64_t rows, std::int64_t columns,
                      const config::Quantization& quantization = {}) {
  const auto format = format_of(algo, quantization);
  EXPECT_TRUE(format.has_value()) << algo;
  return format ? stored_bytes(*format, rows, columns).value() : -1;
}

config::Quantization method(const std::string& name) {
  config::Quantization quantization;
  quantization.method = {name, {}};
  return quantization;
}

TEST(StoredBytes, Fp8_HasScalesOfTensorAndInput) {
  EXPECT_EQ(bytes_of("FP8", 64, 32), 64 * 32 + 8);
  config::Quantization dynamic;
  dynamic.activation_scheme = {"dynamic", {}};
  EXPECT_EQ(bytes_of("FP8", 64, 32, dynamic), 64 * 32 + 4);
}

TEST(StoredBytes, RowScales_FollowTheWriter) {
  EXPECT_EQ(bytes_of("FP8_PER_CHANNEL_PER_TOKEN", 64, 32), 64 * 32 + 64 * 4);
  EXPECT_EQ(bytes_of("FP8_PER_CHANNEL_PER_TOKEN", 64, 32, method("compressed-tensors")),
            64 * 32 + 64 * 2);
}

TEST(StoredBytes, Blocks_AreCountedUpwards) {
  EXPECT_EQ(bytes_of("FP8_BLOCK_SCALES", 576, 7168), 576 * 7168 + 5 * 56 * 4);
  config::Quantization small;
  small.weight_block_size = {64, 32};
  EXPECT_EQ(bytes_of("FP8_BLOCK_SCALES", 65, 33, small), 65 * 33 + 2 * 2 * 4);
}

TEST(StoredBytes, FourBitFloats_HaveScalesAGroup) {
  EXPECT_EQ(bytes_of("NVFP4", 64, 32), 64 * 16 + 64 * 2 + 8);
  EXPECT_EQ(bytes_of("W4A16_NVFP4", 64, 32), 64 * 16 + 64 * 2 + 4);
  EXPECT_EQ(bytes_of("W4A16_MXFP4", 64, 64), 64 * 32 + 64 * 2);
  EXPECT_EQ(bytes_of("MXFP8", 64, 64), 64 * 64 + 64 * 2);
}

TEST(StoredBytes, FourBitIntegers_FollowTheMethod) {
  config::Quantization awq = method("awq");
  awq.group_size = testing::stated(128);
  EXPECT_EQ(bytes_of("W4A16_AWQ", 64, 256, awq), 64 * 128 + 64 * 2 * 2 + 64);
  config::Quantization gptq = method("gptq");
  gptq.group_size = testing::stated(128);
  EXPECT_EQ(bytes_of("W4A16_GPTQ", 64, 256, gptq), 64 * 128 + 64 * 2 * 2 + 64 + 256 * 4);
  config::Quantization packed = method("compressed-tensors");
  packed.group_size = testing::stated(32);
  EXPECT_EQ(bytes_of("W4A16", 64, 64, packed), 64 * 32 + 64 * 2 * 2);
}

TEST(StoredBytes, OddSizes_AreRoundedUp) {
  EXPECT_EQ(bytes_of("NVFP4", 3, 17), (3 * 17 + 1) / 2 + 3 * 2 + 8);
}

TEST(StoredBytes, Overflow_IsKept) {
  const Format format{.bits = 8};
  EXPECT_FALSE(stored_bytes(format, std::numeric_limits<std::int64_t>::max(), 2).fits());
}

TEST(FormatOf, UnknownName_IsNothing) {
  EXPECT_FALSE(format_of("NVFP5", {}).has_value());
  EXPECT_FALSE(format_of("", {}).has_value());
}

TEST(FormatFromBits, StatedBits_AreUsed) {
  config::Quantization quantization;
  EXPECT_FALSE(format_from_bits(quantization).has_value());
  quantization.weight_bits = testing::stated(3);
  EXPECT_EQ(format_from_bits(quantization)->bits, 3);
  quantization.weight_bits = testing::stated(99);
  EXPECT_FALSE(format_from_bits(quantization).has_value());
}

TEST(DtypeBytes, KnownNames_HaveTheirSize) {
  EXPECT_EQ(dtype_bytes("bfloat16"), 2);
  EXPECT_EQ(dtype_bytes("float16"), 2);
  EXPECT_EQ(dtype_bytes("float32"), 4);
  EXPECT_EQ(dtype_bytes("float8_e4m3fn"), 1);
  EXPECT_EQ(dtype_bytes("int4"), std::nullopt);
}

}  // namespace
}  // namespace kernelpath::memory
