#pragma once

#include <cstdint>
#include <cuda_runtime_api.h>
#include <memory>
#include <string>

// FlashInfer's decode kernels as a peer of our own: its headers, compiled in where they were found
// (KERNELPATH_FLASHINFER). Nothing of FlashInfer is seen outside this folder.
namespace kernelpath::bench::flashinfer_peer {

// One query token a request over a paged cache. Pointers are the device's unless they say "host".
// Strides count elements.
struct DecodeProblem {
  std::int32_t batch = 0;
  std::int32_t num_heads = 0;
  std::int32_t num_kv_heads = 0;
  std::int32_t head_dim = 0;
  std::int32_t page_size = 0;
  bool fp8 = false;                             // cache in e4m3; else bf16
  const std::int32_t* host_indptr = nullptr;    // [batch + 1]: first page of each request
  const std::int32_t* indptr = nullptr;         // the same
  const std::int32_t* last_page_len = nullptr;  // [batch]: tokens in the last page
  const std::int32_t* query_start = nullptr;    // [batch + 1]: 0, 1, … batch
  const std::int32_t* host_query_start = nullptr;
  const void* q = nullptr;  // bf16 [batch, num_heads, head_dim]
  const void* k = nullptr;
  const void* v = nullptr;
  void* o = nullptr;             // bf16 [batch, num_heads, head_dim]
  std::int64_t page_stride = 0;  // of k and v alike
  std::int64_t token_stride = 0;
  std::int64_t head_stride = 0;
  float softmax_scale = 1.0F;
};

// Plans on the host, then launches without allocation.
class Decode {
 public:
  virtual ~Decode() = default;
  // Reads the pages `indices` [pages of all requests]. "" or what went wrong.
  virtual std::string launch(const std::int32_t* indices, cudaStream_t stream) = 0;
};

// Memory that a plan needs.
struct Workspace {
  void* floats = nullptr;
  std::size_t float_bytes = 0;
  void* integers = nullptr;
  std::size_t integer_bytes = 0;
  void* pinned_integers = nullptr;  // on the host, as many
};

// The kernels on tensor cores (FlashInfer's use_tensor_cores), or those on CUDA cores. Null with
// `problem_text` set where this build has none for the problem or FlashInfer refuses it.
std::unique_ptr<Decode> make_decode(bool tensor_cores, const DecodeProblem& problem,
                                    const Workspace& workspace, std::string& problem_text);

}  // namespace kernelpath::bench::flashinfer_peer
