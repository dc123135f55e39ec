#pragma once

#include "base/result.h"

#include <cuda_runtime_api.h>
#include <string_view>

// For this folder's units only: needs the toolkit's headers.
namespace kernelpath::kernels::cuda {

// Nothing, or an Error with the call, CUDA's name of the status and its text: kUnavailable where
// there is no usable device, kResource where memory ran out, else kRuntime.
Result<void> check_status(cudaError_t status, std::string_view call);

}  // namespace kernelpath::kernels::cuda
