#pragma once

#include "config/model_config.h"
#include "memory/size.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace kernelpath::memory {

// How the weight of a linear layer, [rows, columns], is stored: its elements and what belongs to
// them. A size of 0 means: no such part.
struct Format {
  std::int64_t bits = 16;          // of an element
  std::int64_t group_columns = 0;  // columns that share a scale, within a row
  std::int64_t group_scale_bytes = 0;
  std::int64_t group_zero_bits = 0;  // a zero point per group
  std::int64_t block_rows = 0;       // a scale per block of rows × columns
  std::int64_t block_columns = 0;
  std::int64_t block_scale_bytes = 0;
  std::int64_t row_bytes = 0;     // a scale per row
  std::int64_t column_bytes = 0;  // an entry per column (GPTQ's g_idx, AWQ's pre-scale)
  std::int64_t tensor_bytes = 0;  // scales of the whole tensor and of its input
};

// Bytes of a [rows, columns] weight in `format`, scales included.
Size stored_bytes(const Format& format, Size rows, Size columns);

// The format that an algorithm stands for ("NVFP4"), with the numbers of `quantization` (group and
// block sizes). Nothing where the name is not known; `format_from_bits` is then the best guess.
std::optional<Format> format_of(std::string_view algo, const config::Quantization& quantization);
std::optional<Format> format_from_bits(const config::Quantization& quantization);

// Bytes of an element that is not quantised ("bfloat16" → 2). Nothing for an unknown name.
std::optional<std::int64_t> dtype_bytes(std::string_view dtype);

}  // namespace kernelpath::memory
