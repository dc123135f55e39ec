#pragma once

#include "kernels/cuda/ceilings.h"

#include <cuda_runtime_api.h>

namespace kernelpath::kernels::cuda {

cudaError_t launch_linear_kernel(const std::byte* data, std::int64_t bytes, std::uint32_t* sink,
                                 cudaStream_t stream);
cudaError_t launch_gather_kernel(const GatherRead& read, std::uint32_t* sink, cudaStream_t stream);

}  // namespace kernelpath::kernels::cuda
