#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace kernelpath::kernels {

// How the values of a weight matrix are stored. Kernels convert them in registers; nothing is
// unpacked beforehand.
enum class WeightFormat : std::uint8_t {
  kF32,
  kBf16,
  kF16,
  kFp8E4m3,  // e4m3fn with scales of rows or of blocks
  kE2m1,     // two 4-bit floats a byte, the even column in the low half (nvfp4, mxfp4)
  // NOLINTBEGIN(readability-identifier-naming): ggml's names
  kQ8_0,  // int8, a scale for 32 columns
  kQ4_0,  // ggml: 32 columns in 16 bytes, the first 16 of them in the low halves, minus 8
  kQ5_0,  // ggml: 32 columns in 22 bytes, their scale and their fifth bits before the halves
  // NOLINTEND(readability-identifier-naming)
  kQ4K,  // ggml: super-blocks of 256 columns in 144 bytes, scales and minima inside
  kQ5K,  // the same in 176 bytes, with fifth bits
  kQ6K,  // ggml: super-blocks of 256 columns in 210 bytes, a scale for 16 columns inside
};
std::string_view weight_format_name(WeightFormat format);

// ggml's formats of blocks, which GGUF files have beside plain floats: kQ8_0, kQ4_0 …
std::span<const WeightFormat> ggml_block_formats();
// The one of this name ("q6_K", as ggml spells it), or nothing.
std::optional<WeightFormat> find_ggml_block_format(std::string_view name);
// Whether blocks hold their scales themselves: such rows are kept as files have them.
bool has_inner_scales(WeightFormat format);

// How scales are stored.
enum class ScaleFormat : std::uint8_t { kNone, kF32, kBf16, kF16, kE4m3, kE8m0 };
constexpr std::int64_t scale_bytes(ScaleFormat format) {
  switch (format) {
    case ScaleFormat::kNone:
      return 0;
    case ScaleFormat::kF32:
      return 4;
    case ScaleFormat::kBf16:
    case ScaleFormat::kF16:
      return 2;
    case ScaleFormat::kE4m3:
    case ScaleFormat::kE8m0:
      return 1;
  }
  return 0;
}

// A matrix of `rows` outputs by `cols` inputs, without ownership:
//   w[r, c] = value(r, c) * scales[r / block_rows, c / block_cols] * scale
// Row r of the values starts at data + r * row_bytes; row b of the scales at scales + b *
// scale_row_bytes. Formats with inner scales have none here.
struct WeightMatrix {
  WeightFormat format = WeightFormat::kF32;
  ScaleFormat scale_format = ScaleFormat::kNone;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  const std::byte* data = nullptr;
  std::int64_t row_bytes = 0;
  const std::byte* scales = nullptr;
  std::int64_t scale_row_bytes = 0;
  std::int64_t block_rows = 1;
  std::int64_t block_cols = 1;
  float scale = 1.0F;

  // One scale for a whole row, or none at all: it can be applied to the finished sum.
  [[nodiscard]] constexpr bool scales_whole_rows() const { return block_cols >= cols; }
};

// Bytes of a row of `cols` values without scales; -1 where they do not fill whole bytes or blocks.
std::int64_t weight_row_bytes(WeightFormat format, std::int64_t cols);

// Columns of the smallest unit that a row is made of (1, 2, 32 or 256).
std::int64_t weight_block_cols(WeightFormat format);

// Writes row `row` as float32, value by value: the definition that every kernel is compared with.
// `out` is [cols].
void dequantize_row(const WeightMatrix& matrix, std::int64_t row, float* out);
// The columns [first, first + count) of it, whatever its blocks are.
void dequantize_columns(const WeightMatrix& matrix, std::int64_t row, std::int64_t first,
                        std::int64_t count, float* out);

}  // namespace kernelpath::kernels
