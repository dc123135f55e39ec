// Source: llama.cpp 0c1e5709, ggml/src/ggml-cuda/common.cuh and CMakeLists.txt.
#include "engines/llamacpp/cuda_gpu.h"

#include <algorithm>

namespace kernelpath::engines::llamacpp {
namespace {

constexpr std::int64_t kCdna1 = kAmdOffset + 0x908;
constexpr std::int64_t kGfx909 = kAmdOffset + 0x909;  // processors with graphics, no matrix cores
constexpr std::int64_t kGfx90c = kAmdOffset + 0x90c;
constexpr std::int64_t kRdna1 = kAmdOffset + 0x1010;
constexpr std::int64_t kRdna3 = kAmdOffset + 0x1100;

}  // namespace

CudaBuild CudaBuild::cuda12() {
  return {.architectures = {500, 610, 700, 750, 800, 860, 890, 900, 1200, 1210}};
}

CudaBuild CudaBuild::cuda13() { return {.architectures = {750, 800, 860, 890, 900, 1200, 1210}}; }

CudaGpu::CudaGpu(const CudaBuild& build, std::int64_t cc) : cc_(cc) {
  if (is_amd()) {
    compiled_ = cc;  // HIP has no list
    return;
  }
  for (const std::int64_t architecture : build.architectures) {
    if (architecture <= cc) compiled_ = std::max(compiled_, architecture);
  }
}

bool CudaGpu::has_mfma() const {
  return cc_ >= kCdna1 && cc_ < kRdna1 && cc_ != kGfx909 && cc_ != kGfx90c;
}

bool CudaGpu::has_wmma() const { return cc_ >= kRdna3; }

}  // namespace kernelpath::engines::llamacpp
