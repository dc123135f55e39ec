#pragma once

#include <cstddef>
#include <cuda_runtime_api.h>

namespace kernelpath::kernels::cuda::sm80 {

struct LaunchSize {
  unsigned blocks = 1;
  unsigned threads = 1;
  std::size_t shared_bytes = 0;
};

// Launches kernel(params). With `overlap`, its blocks may start as soon as those of the launch
// before have started and left room; the kernel waits for that launch's end by itself.
template <class Params>
cudaError_t launch_overlapping(void (*kernel)(Params), const Params& params, LaunchSize size,
                               bool overlap, cudaStream_t stream) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(size.blocks);
  config.blockDim = dim3(size.threads);
  config.dynamicSmemBytes = size.shared_bytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = overlap ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, params);
}

}  // namespace kernelpath::kernels::cuda::sm80
