#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace kernelpath::checkpoint {

// An element type of the safetensors format, by the name it has in a header.
struct Dtype {
  std::string_view name;  // "BF16"
  int bits = 0;           // 4 for F4; a tensor of such a type must fill whole bytes
};

// The type of that name in safetensors 0.8.0 (safetensors/src/tensor.rs, enum Dtype), or null.
const Dtype* find_dtype(std::string_view name);

// Bytes of `elements` values; nothing if they do not fill whole bytes or the number does not fit.
std::optional<std::int64_t> dtype_bytes(const Dtype& dtype, std::int64_t elements);

}  // namespace kernelpath::checkpoint
