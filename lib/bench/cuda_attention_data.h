#pragma once

#include "bench/cuda_machine.h"
#include "bench/paged_data.h"
#include "bench/target.h"
#include "kernels/cuda/gqa_decode.h"

#include <memory>
#include <vector>

namespace kernelpath::bench {

// Cache, page tables, queries and outputs of gqa-decode and prefill on a CUDA device.
struct CudaAttentionData {
  PagePlan plan;  // on the host
  CacheState state = CacheState::kMemory;
  std::int64_t k_bytes = 0;
  std::int64_t v_bytes = 0;
  std::int64_t run_bytes = 0;  // that lie together and are read by one KV head; a power of two
  Buffer kv;                   // all pages of K, then all of V
  Buffer k_scales;
  Buffer v_scales;
  Buffer query_start;
  Buffer seq_lens;
  Buffer block_table;
  Buffer q;
  Buffer o;
  Buffer sinks;

  static Result<std::unique_ptr<CudaAttentionData>> make(CudaMachine& machine, const Shape& shape,
                                                         bool cold);

  // The pointers of one copy.
  void fill(const Shape& shape, std::int64_t copy, kernels::cuda::DecodeParams& out) const;

  // The outputs of the first copy against the float64 reference.
  Result<Check> compare(CudaMachine& machine, const Shape& shape) const;

  // [copies, runs]: the runs of K and V in the order of requests, heads and pages.
  Result<Buffer> run_table(CudaMachine& machine, const Shape& shape) const;
};

// Types and sizes alone, for what is judged before there are any data. Block scales are somewhere,
// so that it is the type that is judged.
kernels::cuda::DecodeParams attention_params(const Shape& shape);

// Values of `count` elements of a 16-bit type.
std::vector<float> widened(attention::DataType type, std::span<const std::uint16_t> codes);

}  // namespace kernelpath::bench
