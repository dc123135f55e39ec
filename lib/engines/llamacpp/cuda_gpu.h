#pragma once

#include "engines/llamacpp/cuda_kernels.h"

#include <cstdint>

namespace kernelpath::engines::llamacpp {

// Questions of ggml-cuda/common.cuh about a GPU and the build.
class CudaGpu {
 public:
  CudaGpu(const CudaBuild& build, std::int64_t cc);

  [[nodiscard]] std::int64_t cc() const { return cc_; }
  [[nodiscard]] bool is_nvidia() const { return cc_ < kAmdOffset; }
  [[nodiscard]] bool is_amd() const { return !is_nvidia(); }
  // The largest compiled architecture that runs on the GPU; -1 if none does.
  [[nodiscard]] std::int64_t compiled() const { return compiled_; }
  [[nodiscard]] bool has_turing_cores() const { return is_nvidia() && compiled_ >= 750; }
  [[nodiscard]] bool has_volta_cores() const { return is_nvidia() && compiled_ == 700; }
  [[nodiscard]] bool has_mfma() const;  // CDNA
  [[nodiscard]] bool has_wmma() const;  // RDNA 3 and 4

 private:
  std::int64_t cc_;
  std::int64_t compiled_ = -1;
};

}  // namespace kernelpath::engines::llamacpp
