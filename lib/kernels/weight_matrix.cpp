#include "kernels/weight_matrix.h"

#include "base/float_types.h"

#include <algorithm>
#include <cstring>

namespace kernelpath::kernels {
namespace {

template <class T>
T load(const std::byte* data, std::int64_t index) {
  T out;
  std::memcpy(&out, data + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return out;
}

float scale_at(const WeightMatrix& m, std::int64_t row, std::int64_t column) {
  const std::byte* const row_scales = m.scales + row / m.block_rows * m.scale_row_bytes;
  const std::int64_t block = column / m.block_cols;
  switch (m.scale_format) {
    case ScaleFormat::kNone:
      return 1.0F;
    case ScaleFormat::kF32:
      return load<float>(row_scales, block);
    case ScaleFormat::kBf16:
      return bf16_to_f32(load<std::uint16_t>(row_scales, block));
    case ScaleFormat::kF16:
      return f16_to_f32(load<std::uint16_t>(row_scales, block));
    case ScaleFormat::kE4m3:
      return e4m3_to_f32(load<std::uint8_t>(row_scales, block));
    case ScaleFormat::kE8m0:
      return e8m0_to_f32(load<std::uint8_t>(row_scales, block));
  }
  return 1.0F;
}

constexpr std::int64_t kSuperBlock = 256;
constexpr std::int64_t kSuperBlockBytes = 144;

// A super-block of q4_K: f16 d, f16 dmin, 12 bytes with eight 6-bit scales and eight 6-bit minima,
// 128 bytes of codes: 64 columns in 32 bytes, the first 32 of them in the low halves.
// Source: ggml, ggml-quants.c (dequantize_row_q4_K, get_scale_min_k4).
float q4k_at(const std::byte* row, std::int64_t column) {
  const std::byte* const block = row + column / kSuperBlock * kSuperBlockBytes;
  const auto byte = [&](std::int64_t i) { return unsigned{load<std::uint8_t>(block, i)}; };
  const std::int64_t inside = column % kSuperBlock;
  const std::int64_t sub = inside / 32;
  unsigned scale = 0;
  unsigned minimum = 0;
  if (sub < 4) {
    scale = byte(4 + sub) & 63U;
    minimum = byte(8 + sub) & 63U;
  } else {
    scale = (byte(8 + sub) & 15U) | (byte(sub) >> 6U << 4U);
    minimum = (byte(8 + sub) >> 4U) | (byte(4 + sub) >> 6U << 4U);
  }
  const unsigned pair = byte(16 + inside / 64 * 32 + inside % 32);
  const unsigned code = sub % 2 == 0 ? pair & 15U : pair >> 4U;
  const float d = f16_to_f32(load<std::uint16_t>(block, 0)) * static_cast<float>(scale);
  const float dmin = f16_to_f32(load<std::uint16_t>(block, 1)) * static_cast<float>(minimum);
  return d * static_cast<float>(code) - dmin;
}

float value_at(const WeightMatrix& m, const std::byte* row, std::int64_t column) {
  switch (m.format) {
    case WeightFormat::kF32:
      return load<float>(row, column);
    case WeightFormat::kBf16:
      return bf16_to_f32(load<std::uint16_t>(row, column));
    case WeightFormat::kF16:
      return f16_to_f32(load<std::uint16_t>(row, column));
    case WeightFormat::kFp8E4m3:
      return e4m3_to_f32(load<std::uint8_t>(row, column));
    case WeightFormat::kE2m1: {
      const auto pair = load<std::uint8_t>(row, column / 2);
      return e2m1_to_f32(static_cast<std::uint8_t>(column % 2 == 0 ? pair : pair >> 4U));
    }
    case WeightFormat::kQ8_0:
      return static_cast<float>(load<std::int8_t>(row, column));
    case WeightFormat::kQ4_0: {
      const std::int64_t inside = column % 32;
      const unsigned pair = load<std::uint8_t>(row, column / 32 * 16 + inside % 16);
      return static_cast<float>(inside < 16 ? pair & 15U : pair >> 4U) - 8.0F;
    }
    case WeightFormat::kQ4K:
      return q4k_at(row, column);
  }
  return 0.0F;
}

}  // namespace

std::string_view weight_format_name(WeightFormat format) {
  switch (format) {
    case WeightFormat::kF32:
      return "float32";
    case WeightFormat::kBf16:
      return "bfloat16";
    case WeightFormat::kF16:
      return "float16";
    case WeightFormat::kFp8E4m3:
      return "fp8_e4m3";
    case WeightFormat::kE2m1:
      return "e2m1";
    case WeightFormat::kQ8_0:
      return "q8_0";
    case WeightFormat::kQ4_0:
      return "q4_0";
    case WeightFormat::kQ4K:
      return "q4_K";
  }
  return "";
}

std::int64_t weight_block_cols(WeightFormat format) {
  switch (format) {
    case WeightFormat::kF32:
    case WeightFormat::kBf16:
    case WeightFormat::kF16:
    case WeightFormat::kFp8E4m3:
      return 1;
    case WeightFormat::kE2m1:
      return 2;
    case WeightFormat::kQ8_0:
    case WeightFormat::kQ4_0:
      return 32;
    case WeightFormat::kQ4K:
      return kSuperBlock;
  }
  return 1;
}

std::int64_t weight_row_bytes(WeightFormat format, std::int64_t cols) {
  if (cols % weight_block_cols(format) != 0) return -1;
  switch (format) {
    case WeightFormat::kF32:
      return cols * 4;
    case WeightFormat::kBf16:
    case WeightFormat::kF16:
      return cols * 2;
    case WeightFormat::kFp8E4m3:
    case WeightFormat::kQ8_0:
      return cols;
    case WeightFormat::kE2m1:
    case WeightFormat::kQ4_0:
      return cols / 2;
    case WeightFormat::kQ4K:
      return cols / kSuperBlock * kSuperBlockBytes;
  }
  return -1;
}

void dequantize_columns(const WeightMatrix& matrix, std::int64_t row, std::int64_t first,
                        std::int64_t count, float* out) {
  const std::byte* const data = matrix.data + row * matrix.row_bytes;
  const bool scaled = matrix.scale_format != ScaleFormat::kNone;
  for (std::int64_t i = 0; i < count; ++i) {
    const float scale = scaled ? scale_at(matrix, row, first + i) : 1.0F;
    out[i] = value_at(matrix, data, first + i) * (scale * matrix.scale);
  }
}

void dequantize_row(const WeightMatrix& matrix, std::int64_t row, float* out) {
  const std::byte* const data = matrix.data + row * matrix.row_bytes;
  if (matrix.scale_format == ScaleFormat::kNone && matrix.scale == 1.0F) {
    if (matrix.format == WeightFormat::kF32) {
      std::memcpy(out, data, static_cast<std::size_t>(matrix.cols) * sizeof(float));
      return;
    }
    if (matrix.format == WeightFormat::kBf16) {
      for (std::int64_t c = 0; c < matrix.cols; ++c) {
        out[c] = bf16_to_f32(load<std::uint16_t>(data, c));
      }
      return;
    }
  }
  dequantize_columns(matrix, row, 0, matrix.cols, out);
}

}  // namespace kernelpath::kernels
