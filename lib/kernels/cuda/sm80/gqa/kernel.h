#pragma once

#include "attention/data_type.h"
#include "kernels/cuda/decode_plan.h"

#include <cstddef>
#include <cstdint>
#include <cuda_runtime_api.h>

namespace kernelpath::kernels::cuda::sm80 {

// Division of numbers below 2^31 by a divisor that the launch fixes: a multiplication and a shift.
struct FastDivisor {
  std::uint32_t divisor = 1;
  std::uint32_t multiplier = 1;
  std::uint32_t shift = 0;

  constexpr FastDivisor() = default;
  explicit constexpr FastDivisor(std::uint32_t by) : divisor(by) {
    while ((std::uint64_t{1} << shift) < by) ++shift;
    const std::uint64_t power = std::uint64_t{1} << shift;
    multiplier = static_cast<std::uint32_t>((((power - by) << 32) / by) + 1);
  }
  [[nodiscard]] constexpr std::uint32_t quotient(std::uint32_t dividend) const {
    const auto high =
        static_cast<std::uint32_t>(static_cast<std::uint64_t>(dividend) * multiplier >> 32);
    return (high + dividend) >> shift;
  }
};

// One side, K or V, in bytes.
struct SideParams {
  const std::byte* data = nullptr;
  const std::byte* block_scales = nullptr;
  std::uint32_t page_bytes = 0;  // below 2^31, as the others: products with them take 64 bits
  std::uint32_t token_bytes = 0;
  std::uint32_t head_bytes = 0;
  std::int32_t chunks = 0;  // of 16 bytes in a row
  float scale = 1.0F;
  const float* head_scales = nullptr;  // [num_kv_heads] or null
};

// Two floats, each with the mark of the launch that wrote it; see merge.cuh.
struct alignas(16) MarkedPair {
  std::uint64_t words[2] = {0, 0};  // NOLINT(modernize-avoid-c-arrays): operands of assembler
};

struct DecodeKernelParams {
  PlanShape shape = {};
  const RequestPlan* requests = nullptr;      // [num_requests]
  const WorkerPlan* workers = nullptr;        // [shape.workers]
  const std::int32_t* first_pages = nullptr;  // [shape.workers, shape.first_pages]
  SideParams k = {};
  SideParams v = {};
  const std::int32_t* block_table = nullptr;  // [num_requests, block_table_stride]
  std::int64_t block_table_stride = 0;
  // Whether 16 tokens of a head (from a multiple of 16 on) are adjacent, rows as long as the
  // kernel's, and their block scales too, at multiples of 16 bytes.
  std::int32_t tiles_are_runs = 0;
  FastDivisor page_size = {};
  FastDivisor group = {};
  const std::byte* q = nullptr;  // [tokens, num_heads, head_dim], bf16 or f16
  std::int64_t q_stride = 0;
  std::byte* o = nullptr;  // [tokens, num_heads, v_head_dim]
  std::int64_t o_stride = 0;
  float* lse = nullptr;          // [tokens, num_heads], natural logarithm; or null
  const float* sinks = nullptr;  // [num_heads] or null
  std::int32_t num_heads = 0;
  std::int32_t head_dim = 0;
  std::int32_t v_head_dim = 0;
  std::int32_t query_is_bf16 = 1;
  float softmax_scale = 1.0F;
  float softcap = 0.0F;
  std::int32_t merge_buffers = 1;     // 2 where shared memory has the room
  std::int32_t overlap_launches = 0;  // the device has griddepcontrol
  // Partial results of items that several workers share, by partial_slot().
  MarkedPair* partials = nullptr;  // [2 * workers, rows, dim / 2 + 1]
  std::uint32_t* marks = nullptr;  // [workers]: of this launch; every launch counts them up
};

// Launches one instantiation. Each is a unit of its own (instantiation.cu.in).
template <attention::DataType Type, int Dim, int RowTiles>
cudaError_t launch_decode_kernel(const DecodeKernelParams& params, cudaStream_t stream);

// Fills requests, workers and first_pages; marks become 1 and partials 0, the mark of no launch.
struct PlanKernelParams {
  PlanShape shape = {};
  std::int32_t num_requests = 0;
  const std::int32_t* query_start = nullptr;
  const std::int32_t* seq_lens = nullptr;
  const std::int32_t* block_table = nullptr;
  std::int64_t block_table_stride = 0;
  std::int32_t page_size = 1;
  RequestPlan* requests = nullptr;
  WorkerPlan* workers = nullptr;
  std::int32_t* first_pages = nullptr;
  std::uint32_t* marks = nullptr;
  MarkedPair* partials = nullptr;
  std::int64_t num_partials = 0;
  std::int32_t overlap_launches = 0;
};
cudaError_t launch_plan_kernel(const PlanKernelParams& params, cudaStream_t stream);

}  // namespace kernelpath::kernels::cuda::sm80
