#include "kernels/cuda/ceilings.cuh"

namespace kernelpath::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kLoads = 8;  // of 16 bytes, in flight in each thread

__device__ uint4 read_once(const std::byte* from) {
  uint4 value;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(from));
  return value;
}

__device__ std::uint32_t fold(uint4 value) { return value.x ^ value.y ^ value.z ^ value.w; }

// Almost never writes, but the compiler cannot know.
__device__ void keep(std::uint32_t value, std::uint32_t* sink) {
  if (value == 0x5EED5EEDU) *sink = value;
}

// A warp reads kLoads rows of 512 adjacent bytes at a time.
__global__ void __launch_bounds__(kThreads)
    linear_kernel(const std::byte* data, std::int64_t chunks, std::uint32_t* sink) {
  const std::int64_t lane = threadIdx.x % 32;
  const std::int64_t warp = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 32;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads * kLoads;
  std::uint32_t sum = 0;
  for (std::int64_t at = warp * 32 * kLoads + lane; at < chunks; at += step) {
    uint4 values[kLoads];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      values[i] = at + i * 32 < chunks ? read_once(data + (at + i * 32) * 16) : uint4{0, 0, 0, 0};
    }
#pragma unroll
    for (int i = 0; i < kLoads; ++i) sum ^= fold(values[i]);
  }
  keep(sum, sink);
}

__global__ void __launch_bounds__(kThreads)
    gather_kernel(const GatherRead read, int run_shift, std::uint32_t* sink) {
  const std::int64_t chunks = read.num_runs << run_shift;
  const std::int64_t in_run = (std::int64_t{1} << run_shift) - 1;
  const std::int64_t lane = threadIdx.x % 32;
  const std::int64_t warp = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 32;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads * kLoads;
  std::uint32_t sum = 0;
  for (std::int64_t at = warp * 32 * kLoads + lane; at < chunks; at += step) {
    std::int32_t runs[kLoads];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const std::int64_t chunk = at + i * 32;
      runs[i] = chunk < chunks ? __ldg(read.table + (chunk >> run_shift)) : -1;
    }
    uint4 values[kLoads];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const std::int64_t chunk = at + i * 32;
      values[i] = runs[i] >= 0
                      ? read_once(read.data + runs[i] * read.run_bytes + (chunk & in_run) * 16)
                      : uint4{0, 0, 0, 0};
    }
#pragma unroll
    for (int i = 0; i < kLoads; ++i) sum ^= fold(values[i]);
  }
  keep(sum, sink);
}

// As many blocks as the device holds at once.
cudaError_t resident_blocks(const void* kernel, int& blocks) {
  int device = 0;
  int sms = 0;
  int per_sm = 0;
  cudaError_t status = cudaGetDevice(&device);
  if (status == cudaSuccess) {
    status = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
  }
  if (status == cudaSuccess) {
    status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, kernel, kThreads, 0);
  }
  blocks = sms * per_sm;
  return status;
}

}  // namespace

cudaError_t launch_linear_kernel(const std::byte* data, std::int64_t bytes, std::uint32_t* sink,
                                 cudaStream_t stream) {
  int blocks = 0;
  const cudaError_t status = resident_blocks(reinterpret_cast<const void*>(&linear_kernel), blocks);
  if (status != cudaSuccess) return status;
  linear_kernel<<<blocks, kThreads, 0, stream>>>(data, bytes / 16, sink);
  return cudaGetLastError();
}

cudaError_t launch_gather_kernel(const GatherRead& read, std::uint32_t* sink, cudaStream_t stream) {
  int blocks = 0;
  const cudaError_t status = resident_blocks(reinterpret_cast<const void*>(&gather_kernel), blocks);
  if (status != cudaSuccess) return status;
  int shift = 0;
  while ((std::int64_t{16} << shift) < read.run_bytes) ++shift;
  gather_kernel<<<blocks, kThreads, 0, stream>>>(read, shift, sink);
  return cudaGetLastError();
}

}  // namespace kernelpath::kernels::cuda
