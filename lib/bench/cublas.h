#pragma once

#include "attention/data_type.h"
#include "bench/cuda_machine.h"

#include <cstdint>
#include <memory>

namespace kernelpath::bench {

// y [tokens, rows] = x [tokens, cols] w [rows, cols]^T, all of one type (kBf16 or kF16).
struct CublasCall {
  attention::DataType type = attention::DataType::kBf16;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t tokens = 0;
  const std::byte* w = nullptr;
  const std::byte* x = nullptr;
  std::byte* y = nullptr;
};

// cuBLAS on the machine's stream, loaded where it is installed: no build needs it.
class Cublas {
 public:
  // Error kUnavailable: libcublas.so.13 is not there.
  static Result<std::unique_ptr<Cublas>> make(CudaMachine& machine);
  // Puts one product on the stream, summed in float32. Error kUnavailable: a size beyond an int.
  [[nodiscard]] Result<void> multiply(const CublasCall& call) const;

 private:
  struct Release {
    void operator()(void* handle) const;
  };
  std::unique_ptr<void, Release> handle_;
  Buffer workspace_;  // its own, so that captured launches allocate nothing
};

}  // namespace kernelpath::bench
