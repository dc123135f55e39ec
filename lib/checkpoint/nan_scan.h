#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace kernelpath::checkpoint {

// Whether values of that safetensors or GGUF type ("F32", "BF16", "F8_E4M3", "f16" …) hold a NaN.
// `bytes` holds whole values. Types that have none, or whose values are packed in blocks: false.
bool holds_nan(std::string_view type, std::span<const std::byte> bytes);

}  // namespace kernelpath::checkpoint
