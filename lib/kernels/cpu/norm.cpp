#include "kernels/cpu/elementwise.h"

#include <cmath>

namespace kernelpath::kernels::cpu {
namespace {

// Sums in float64: a row is short, and the error of a norm goes into everything behind it.
double sum_of_squares(const float* x, std::int64_t count, double mean) {
  double sum = 0.0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double d = static_cast<double>(x[i]) - mean;
    sum += d * d;
  }
  return sum;
}

double mean_of(const float* x, std::int64_t count) {
  double sum = 0.0;
  for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(x[i]);
  return sum / static_cast<double>(count);
}

// What a row is shifted by and multiplied with.
struct Normaliser {
  float mean = 0.0F;
  float factor = 1.0F;
};

Normaliser normaliser(const NormParams& p, const float* x) {
  const auto dim = static_cast<double>(p.dim);
  const auto eps = static_cast<double>(p.eps);
  switch (p.kind) {
    case NormKind::kRms:
      return {0.0F, static_cast<float>(1.0 / std::sqrt(sum_of_squares(x, p.dim, 0.0) / dim + eps))};
    case NormKind::kL2:
      return {0.0F, static_cast<float>(1.0 / std::sqrt(sum_of_squares(x, p.dim, 0.0) + eps))};
    case NormKind::kLayer: {
      const double mean = mean_of(x, p.dim);
      const double variance = sum_of_squares(x, p.dim, mean) / dim;
      return {static_cast<float>(mean), static_cast<float>(1.0 / std::sqrt(variance + eps))};
    }
  }
  return {};
}

}  // namespace

void norm_rows(const NormParams& p, std::int64_t begin, std::int64_t end) {
  const std::int64_t group_stride = p.group_stride == 0 ? p.dim : p.group_stride;
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t token = row / p.groups;
    const std::int64_t group = row % p.groups * group_stride;
    const std::int64_t from = p.x_rows == nullptr ? token : p.x_rows[token];
    const float* const x = p.x + from * p.x_stride + group;
    float* const y = p.y + token * p.y_stride + group;
    const Normaliser by = normaliser(p, x);
    const float factor = by.factor * p.scale;
    for (std::int64_t i = 0; i < p.dim; ++i) {
      const float weight = p.weight == nullptr ? 1.0F : p.weight[i] + p.weight_offset;
      const float bias = p.bias == nullptr ? 0.0F : p.bias[i];
      y[i] = (x[i] - by.mean) * factor * weight + bias;
    }
  }
}

}  // namespace kernelpath::kernels::cpu
