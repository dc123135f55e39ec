#include "kernels/cuda/ceilings.h"

#include "kernels/cuda/ceilings.cuh"
#include "kernels/cuda/status.h"

#include <fmt/format.h>

#include <bit>

namespace kernelpath::kernels::cuda {

Result<void> launch_linear_read(const std::byte* data, std::int64_t bytes, std::uint32_t* sink,
                                StreamView stream) {
  if (bytes % 16 != 0) {
    return fail({.code = ErrorCode::kUnavailable,
                 .message = fmt::format("a linear read of {} bytes; multiples of 16 are supported",
                                        bytes)});
  }
  return check_status(
      launch_linear_kernel(data, bytes, sink, static_cast<cudaStream_t>(stream.handle)),
      "the launch of the linear read");
}

Result<void> launch_gather_read(const GatherRead& read, std::uint32_t* sink, StreamView stream) {
  if (read.run_bytes < 16 || !std::has_single_bit(static_cast<std::uint64_t>(read.run_bytes))) {
    return fail({.code = ErrorCode::kUnavailable,
                 .message = fmt::format(
                     "a gather of runs of {} bytes; powers of two from 16 on are supported",
                     read.run_bytes)});
  }
  return check_status(launch_gather_kernel(read, sink, static_cast<cudaStream_t>(stream.handle)),
                      "the launch of the gathered read");
}

}  // namespace kernelpath::kernels::cuda
