#pragma once

#include "base/result.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/gqa_decode.h"
#include "kernels/cuda/stream.h"

// Prefill attention over a paged cache on Hopper's tensor cores (wgmma): many queries a request.
namespace kernelpath::kernels::cuda {

// Whether this kernel can run the call: head size 128, cache and queries of one 16-bit type, any
// masks, on sm_90. The error (kUnavailable) names everything that it cannot take; launch_decode()
// runs what it cannot, more slowly.
Result<void> check_prefill(const DecodeParams& params, const DeviceInfo& device);

// One launch, without a plan and without a workspace. params.max_queries must be no less than the
// queries of any request; a captured graph follows changed lengths within it.
Result<void> launch_prefill(const DecodeParams& params, const DeviceInfo& device,
                            StreamView stream);

}  // namespace kernelpath::kernels::cuda
