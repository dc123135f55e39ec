#include "kernels/cpu/elementwise.h"

#include <algorithm>
#include <cmath>

namespace kernelpath::kernels::cpu {
namespace {

float sigmoid(float x) { return 1.0F / (1.0F + std::exp(-x)); }

float gelu_tanh(float x) {
  constexpr float kRootTwoOverPi = 0.7978845608028654F;
  constexpr float kCubic = 0.044715F;
  return 0.5F * x * (1.0F + std::tanh(kRootTwoOverPi * (x + kCubic * x * x * x)));
}

float gelu(float x) {
  constexpr float kRootHalf = 0.7071067811865476F;
  return 0.5F * x * (1.0F + std::erf(x * kRootHalf));
}

float gated(const GateParams& p, float g, float u) {
  switch (p.activation) {
    case Activation::kSilu:
      return g * sigmoid(g) * u;
    case Activation::kGeluTanh:
      return gelu_tanh(g) * u;
    case Activation::kGelu:
      return gelu(g) * u;
    case Activation::kRelu:
      return std::max(g, 0.0F) * u;
    case Activation::kSigmoid:
      return sigmoid(g) * u;
    case Activation::kClamped: {
      const float low = std::min(g, p.limit);
      return (std::clamp(u, -p.limit, p.limit) + 1.0F) * low * sigmoid(p.alpha * low);
    }
  }
  return 0.0F;
}

}  // namespace

void gate_elements(const GateParams& p, std::int64_t begin, std::int64_t end) {
  while (begin < end) {
    const std::int64_t row = begin / p.dim;
    const std::int64_t first = begin % p.dim;
    const std::int64_t last = std::min(p.dim, first + end - begin);
    const float* const gate = p.gate + row * p.stride;
    const float* const up = p.up + row * p.stride;
    float* const y = p.y + row * p.y_stride;
    for (std::int64_t i = first; i < last; ++i) {
      y[i] = gated(p, gate[i * p.element], up[i * p.element]);
    }
    begin += last - first;
  }
}

void scale_and_cap_elements(float scale, float cap, float* x, std::int64_t count) {
  if (cap == 0.0F) {
    for (std::int64_t i = 0; i < count; ++i) x[i] *= scale;
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) x[i] = cap * std::tanh(scale * x[i] / cap);
}

}  // namespace kernelpath::kernels::cpu
