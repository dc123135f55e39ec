#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kernelpath::attention {

// How the values of a KV cache are stored.
enum class DataType : std::uint8_t {
  kF32,
  kBf16,
  kF16,
  kFp8E4m3,  // e4m3fn: no infinity, ±448
  kFp8E5m2,
  kNvfp4,  // e2m1 codes, two a byte (the first one in the low half), one e4m3 scale for 16 of them
};

inline constexpr std::array kDataTypes{DataType::kF32,     DataType::kBf16,    DataType::kF16,
                                       DataType::kFp8E4m3, DataType::kFp8E5m2, DataType::kNvfp4};

// Values of kNvfp4 that share one block scale.
inline constexpr std::int64_t kNvfp4Block = 16;

constexpr int bits_of(DataType type) {
  switch (type) {
    case DataType::kF32:
      return 32;
    case DataType::kBf16:
    case DataType::kF16:
      return 16;
    case DataType::kFp8E4m3:
    case DataType::kFp8E5m2:
      return 8;
    case DataType::kNvfp4:
      return 4;
  }
  return 0;
}

// Bytes of `elements` values without their scales. `elements` fills whole bytes (kNvfp4: whole
// blocks).
constexpr std::int64_t data_bytes(DataType type, std::int64_t elements) {
  return elements * bits_of(type) / 8;
}

// Bytes of the block scales of `elements` values; 0 for types that have none.
constexpr std::int64_t block_scale_bytes(DataType type, std::int64_t elements) {
  return type == DataType::kNvfp4 ? elements / kNvfp4Block : 0;
}

// Whether a row of `head_dim` values can be stored: kNvfp4 takes whole blocks only.
constexpr bool fits_rows_of(DataType type, std::int64_t head_dim) {
  return head_dim > 0 && (type != DataType::kNvfp4 || head_dim % kNvfp4Block == 0);
}

constexpr std::string_view data_type_name(DataType type) {
  switch (type) {
    case DataType::kF32:
      return "float32";
    case DataType::kBf16:
      return "bfloat16";
    case DataType::kF16:
      return "float16";
    case DataType::kFp8E4m3:
      return "fp8_e4m3";
    case DataType::kFp8E5m2:
      return "fp8_e5m2";
    case DataType::kNvfp4:
      return "nvfp4";
  }
  return "";
}

// By the name above, or by a usual other one ("f32", "bf16", "half", "fp8" …); any case.
std::optional<DataType> find_data_type(std::string_view name);

}  // namespace kernelpath::attention
