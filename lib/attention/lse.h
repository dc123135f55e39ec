#pragma once

#include <cstdint>

namespace kernelpath::attention {

// The base of the logarithm in which a log-sum-exp is given. Kernels differ in it (FlashInfer and
// the CUDA kernels of TensorRT-LLM say base 2, FlashAttention and this library's CPU kernels say
// e), and reading one as the other gives finite, plausible and wrong sums.
enum class LogBase : std::uint8_t { kE, k2 };

// log-sum-exp values with their base in the type, one for each row of attention output; rows that
// see no key hold -inf. Merging values of different bases does not compile.
template <LogBase Base>
struct Lse {
  float* data = nullptr;  // [tokens, num_heads]; null where none are asked for
};

template <LogBase Base>
struct ConstLse {
  const float* data = nullptr;  // [tokens, num_heads]
  ConstLse() = default;
  explicit ConstLse(const float* values) : data(values) {}
  ConstLse(Lse<Base> values) : data(values.data) {}  // NOLINT(google-explicit-constructor)
};

using NaturalLse = Lse<LogBase::kE>;

}  // namespace kernelpath::attention
