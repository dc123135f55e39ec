#pragma once

#include "kernels/cuda/append.h"

#include <cuda_runtime_api.h>

namespace kernelpath::kernels::cuda {

cudaError_t launch_append_kernel(const RopeAppendParams& params, cudaStream_t stream);

}  // namespace kernelpath::kernels::cuda
