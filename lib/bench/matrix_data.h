#pragma once

#include "bench/random_data.h"
#include "kernels/weight_matrix.h"

#include <cmath>
#include <cstdint>
#include <span>

// Weights to measure with, and what their products are compared with.
namespace kernelpath::bench {

// Bits of the values, and of positive scales from 2^-7 up.
BitPattern weight_pattern(kernels::WeightFormat format);
BitPattern scale_pattern(kernels::ScaleFormat format);

// Writes the f16 numbers of blocks with inner scales, which random bits may make NaN.
void set_inner_scales(kernels::WeightFormat format, std::byte* data, std::int64_t bytes);

// The error of one output against the sum in float64, in parts of the sum of the magnitudes that it
// adds up.
double output_error(std::span<const float> weights, std::span<const float> x, float y);

// The largest of some errors; NaN where one of them is.
class Worst {
 public:
  void add(double error) {
    if (error > value_ || std::isnan(error)) value_ = error;
  }
  [[nodiscard]] double value() const { return value_; }

 private:
  double value_ = 0;
};

// Row i of `count` rows, or tokens, that stand for all of `of`.
constexpr std::int64_t sampled(std::int64_t i, std::int64_t count, std::int64_t of) {
  return i * of / count;
}

}  // namespace kernelpath::bench
