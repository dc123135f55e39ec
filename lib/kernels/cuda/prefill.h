#pragma once

#include "base/result.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/gqa_decode.h"
#include "kernels/cuda/stream.h"

#include <string>
#include <vector>

// Prefill attention over a paged cache on Hopper's tensor cores (wgmma): many queries a request.
// docs/kernels/prefill.md has the design and what it reaches.
namespace kernelpath::kernels::cuda {

// Whether this kernel can run the call, by kPrefillCapabilities (capabilities.h). The error
// (kUnavailable) names everything that it cannot take; where the device is no sm_90,
// launch_decode() runs the same calls, more slowly.
Result<void> check_prefill(const DecodeParams& params, const DeviceInfo& device);

// One launch, without a plan and without a workspace. params.max_queries must be no less than the
// queries of any request; a captured graph follows changed lengths within it.
Result<void> launch_prefill(const DecodeParams& params, const DeviceInfo& device,
                            StreamView stream);

// What would run, for reports: "sm90_prefill<fp8_e4m3, 192, 128>", or "none"; and all that there
// is.
std::string prefill_kernel_name(const DecodeParams& params);
std::vector<std::string> prefill_kernel_names();

}  // namespace kernelpath::kernels::cuda
