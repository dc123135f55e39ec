#include "bench/matrix_data.h"

#include "base/float_types.h"

#include <array>
#include <cmath>
#include <cstring>

namespace kernelpath::bench {

using kernels::ScaleFormat;
using kernels::WeightFormat;

BitPattern weight_pattern(WeightFormat format) {
  switch (format) {
    case WeightFormat::kF32:
      return pattern_of(attention::DataType::kF32);
    case WeightFormat::kBf16:
      return pattern_of(attention::DataType::kBf16);
    case WeightFormat::kF16:
      return pattern_of(attention::DataType::kF16);
    case WeightFormat::kFp8E4m3:
      return pattern_of(attention::DataType::kFp8E4m3);
    default:
      return kAnyBits;
  }
}

BitPattern scale_pattern(ScaleFormat format) {
  switch (format) {
    case ScaleFormat::kF32:
      return {.mask = 0x00FFFFFF00FFFFFFULL, .base = 0x3C0000003C000000ULL};
    case ScaleFormat::kBf16:
      return {.mask = 0x00FF00FF00FF00FFULL, .base = 0x3C003C003C003C00ULL};
    case ScaleFormat::kF16:
      return {.mask = 0x07FF07FF07FF07FFULL, .base = 0x2000200020002000ULL};
    case ScaleFormat::kE4m3:
      return {.mask = 0x0F0F0F0F0F0F0F0FULL, .base = 0x3030303030303030ULL};
    case ScaleFormat::kE8m0:
      return {.mask = 0x0101010101010101ULL, .base = 0x7878787878787878ULL};
    case ScaleFormat::kNone:
      break;
  }
  return kAnyBits;
}

// q6_K has one at a block's end, the others one or two at the beginning.
void set_inner_scales(WeightFormat format, std::byte* data, std::int64_t bytes) {
  const std::int64_t block = kernels::weight_row_bytes(format, kernels::weight_block_cols(format));
  const std::array<std::uint16_t, 2> scales = {f32_to_f16(0x1p-9F), f32_to_f16(0x1p-8F)};
  const bool two = format == WeightFormat::kQ4K || format == WeightFormat::kQ5K;
  const std::int64_t offset = format == WeightFormat::kQ6K ? block - 2 : 0;
  for (std::int64_t at = 0; at + block <= bytes; at += block) {
    std::memcpy(data + at + offset, scales.data(), two ? 4 : 2);
  }
}

double output_error(std::span<const float> weights, std::span<const float> x, float y) {
  double sum = 0;
  double magnitude = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double product = double{weights[i]} * double{x[i]};
    sum += product;
    magnitude += std::abs(product);
  }
  return magnitude > 0 ? std::abs(sum - double{y}) / magnitude : std::abs(double{y});
}

}  // namespace kernelpath::bench
