#pragma once

#include "attention/data_type.h"
#include "kernels/cuda/sm80/gqa/kernel.h"

#include <cstdint>
#include <cuda_runtime_api.h>

namespace kernelpath::kernels::cuda::sm90 {

struct PrefillKernelParams {
  PlanShape shape = {};  // the masks
  std::int32_t num_requests = 0;
  std::int32_t query_tiles = 0;  // in the longest request
  std::int32_t num_heads = 0;
  std::int32_t head_dim = 0;
  std::int32_t v_head_dim = 0;
  std::int32_t query_is_bf16 = 1;  // and the output
  const std::int32_t* query_start = nullptr;
  const std::int32_t* seq_lens = nullptr;
  const std::int32_t* block_table = nullptr;
  std::int64_t block_table_stride = 0;
  sm80::FastDivisor page_size = {};
  sm80::FastDivisor group = {};
  sm80::SideParams k = {};
  sm80::SideParams v = {};
  const std::byte* q = nullptr;  // [tokens, num_heads, head_dim]
  std::int64_t q_stride = 0;
  std::byte* o = nullptr;  // [tokens, num_heads, v_head_dim]
  std::int64_t o_stride = 0;
  float* lse = nullptr;          // [tokens, num_heads], natural logarithm; or null
  const float* sinks = nullptr;  // [num_heads] or null
  float score_scale = 1.0F;      // softmax_scale * k.scale
  float softcap = 0.0F;
};

// Launches one instantiation. Each is a unit of its own (instantiation.cu.in).
template <attention::DataType Type, int DimK, int DimV>
cudaError_t launch_prefill_kernel(const PrefillKernelParams& params, cudaStream_t stream);

}  // namespace kernelpath::kernels::cuda::sm90
