#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace kernelpath::checkpoint {

// An element type of ggml: rows are stored in blocks of so many elements and bytes.
struct GgmlType {
  std::int32_t id = 0;         // as GGUF files have it
  std::string_view name = {};  // "q4_0", as ggml spells it
  std::int64_t block = 1;      // elements
  std::int64_t bytes = 0;      // of a block
  bool quantized = false;
};

// Every type of ggml 0.25.3 (ggml/include/ggml.h, enum ggml_type; ggml/src/ggml.c, type_traits), in
// the order of the ids. Ids that are missing were removed from the format.
std::span<const GgmlType> ggml_types();

// By id or by name; null for one that ggml does not have (any more).
const GgmlType* find_ggml_type(std::int32_t id);
const GgmlType* find_ggml_type(std::string_view name);

// Bytes of a row of `elements`; nothing if it does not fill whole blocks or does not fit 64 bits.
std::optional<std::int64_t> ggml_row_bytes(const GgmlType& type, std::int64_t elements);

}  // namespace kernelpath::checkpoint
