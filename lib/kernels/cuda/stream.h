#pragma once

namespace kernelpath::kernels::cuda {

// A CUDA stream, so that headers need no toolkit: `handle` is a cudaStream_t, null the default
// stream. The caller owns it.
struct StreamView {
  void* handle = nullptr;
};

}  // namespace kernelpath::kernels::cuda
