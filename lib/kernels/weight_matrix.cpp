#include "kernels/weight_matrix.h"

#include "base/float_types.h"
#include "kernels/ggml_blocks.h"

#include <array>
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
    case WeightFormat::kQ5_0:
      return q5_0_value(row, column);
    case WeightFormat::kQ4K:
      return q4_k_value(row, column);
    case WeightFormat::kQ5K:
      return q5_k_value(row, column);
    case WeightFormat::kQ6K:
      return q6_k_value(row, column);
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
    case WeightFormat::kQ5_0:
      return "q5_0";
    case WeightFormat::kQ4K:
      return "q4_K";
    case WeightFormat::kQ5K:
      return "q5_K";
    case WeightFormat::kQ6K:
      return "q6_K";
  }
  return "";
}

std::span<const WeightFormat> ggml_block_formats() {
  static constexpr auto kFormats =
      std::to_array({WeightFormat::kQ8_0, WeightFormat::kQ4_0, WeightFormat::kQ5_0,
                     WeightFormat::kQ4K, WeightFormat::kQ5K, WeightFormat::kQ6K});
  return kFormats;
}

std::optional<WeightFormat> find_ggml_block_format(std::string_view name) {
  for (const WeightFormat format : ggml_block_formats()) {
    if (weight_format_name(format) == name) return format;
  }
  return std::nullopt;
}

bool has_inner_scales(WeightFormat format) {
  return format == WeightFormat::kQ5_0 || format == WeightFormat::kQ4K ||
         format == WeightFormat::kQ5K || format == WeightFormat::kQ6K;
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
    case WeightFormat::kQ5_0:
      return 32;
    case WeightFormat::kQ4K:
    case WeightFormat::kQ5K:
    case WeightFormat::kQ6K:
      return kSuperBlockCols;
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
    case WeightFormat::kQ5_0:
      return cols / 32 * kQ5BlockBytes;
    case WeightFormat::kQ4K:
      return cols / kSuperBlockCols * kQ4KBytes;
    case WeightFormat::kQ5K:
      return cols / kSuperBlockCols * kQ5KBytes;
    case WeightFormat::kQ6K:
      return cols / kSuperBlockCols * kQ6KBytes;
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
