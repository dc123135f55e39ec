#pragma once

#include "base/result.h"
#include "kernels/cuda/stream.h"

#include <cstddef>
#include <cstdint>

// Kernels that read and do nothing else: the limits with which attention kernels are compared.
namespace kernelpath::kernels::cuda {

// Reads [data, data + bytes) once, in order of addresses. `bytes` is a multiple of 16.
// `sink` takes 4 bytes that depend on every byte read, so that no read can be left out.
Result<void> launch_linear_read(const std::byte* data, std::int64_t bytes, std::uint32_t* sink,
                                StreamView stream);

// Runs of adjacent bytes, in the order of a table: what an attention kernel reads through its block
// table. Of page size 16, head size 128 and bf16 in HND order a run has 4096 bytes, in NHD 256.
struct GatherRead {
  const std::byte* data = nullptr;
  const std::int32_t* table = nullptr;  // [num_runs]: run i lies at data + table[i] * run_bytes
  std::int64_t num_runs = 0;
  std::int64_t run_bytes = 0;  // a power of two, 16 or more
};
Result<void> launch_gather_read(const GatherRead& read, std::uint32_t* sink, StreamView stream);

}  // namespace kernelpath::kernels::cuda
