#include "attention/data_type.h"

#include "base/text.h"

#include <string>
#include <utility>

namespace kernelpath::attention {

std::optional<DataType> find_data_type(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, DataType>, 13> kNames{{
      {"float32", DataType::kF32},
      {"f32", DataType::kF32},
      {"float", DataType::kF32},
      {"bfloat16", DataType::kBf16},
      {"bf16", DataType::kBf16},
      {"float16", DataType::kF16},
      {"f16", DataType::kF16},
      {"fp16", DataType::kF16},
      {"half", DataType::kF16},
      {"fp8", DataType::kFp8E4m3},
      {"fp8_e4m3", DataType::kFp8E4m3},
      {"fp8_e5m2", DataType::kFp8E5m2},
      {"nvfp4", DataType::kNvfp4},
  }};
  const std::string lower = to_lower(name);
  for (const auto& [known, type] : kNames) {
    if (lower == known) return type;
  }
  return std::nullopt;
}

}  // namespace kernelpath::attention
