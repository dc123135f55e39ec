#pragma once

#include <cstddef>
#include <cstdint>

// Values of ggml's blocks that hold their scales themselves, one at a time: what they mean, not how
// they are computed with fast. Source: ggml (llama.cpp 0c1e5709), ggml/src/ggml-quants.c
// (dequantize_row_q5_0, _q4_K, _q5_K and _q6_K, get_scale_min_k4).
namespace kernelpath::kernels {

// Bytes of a block of q5_0, 32 columns: f16 scale, 4 bytes of fifth bits, 16 of low halves.
constexpr std::int64_t kQ5BlockBytes = 22;

// Super-blocks of 256 columns.
constexpr std::int64_t kSuperBlockCols = 256;
// q4_K: f16 d, f16 dmin, 12 bytes with eight 6-bit scales and eight 6-bit minima, 128 bytes of
// codes: 64 columns in 32 bytes, the first 32 of them in the low halves.
constexpr std::int64_t kQ4KBytes = 144;
// q5_K: as q4_K, with 32 bytes of fifth bits before the codes: bit s of byte c is that of column c
// of sub-block s.
constexpr std::int64_t kQ5KBytes = 176;
// q6_K: 128 bytes of low halves, 64 bytes of upper bits, 16 scales of a byte, f16 d. Of each half
// of 128 columns, columns c and c + 64 share a byte of low halves, and c, c + 32, c + 64 and c + 96
// one of upper bits.
constexpr std::int64_t kQ6KBytes = 210;

// `row` is that of the matrix, `column` any of it.
float q5_0_value(const std::byte* row, std::int64_t column);
float q4_k_value(const std::byte* row, std::int64_t column);
float q5_k_value(const std::byte* row, std::int64_t column);
float q6_k_value(const std::byte* row, std::int64_t column);

}  // namespace kernelpath::kernels
