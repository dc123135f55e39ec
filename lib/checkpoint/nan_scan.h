#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace kernelpath::checkpoint {

// Whether values of that safetensors or GGUF type ("F32", "BF16", "F8_E4M3", "f16", "q6_K" …) hold
// a NaN; of ggml's blocks, whether a scale is one. `bytes` begins and ends at a multiple of
// nan_scan_unit(). Types that have none, or that nothing reads: false.
bool holds_nan(std::string_view type, std::span<const std::byte> bytes);

// Bytes of the smallest piece that holds_nan() can judge, of blocks; 1 for plain values, whose size
// divides any even piece.
std::int64_t nan_scan_unit(std::string_view type);

}  // namespace kernelpath::checkpoint
