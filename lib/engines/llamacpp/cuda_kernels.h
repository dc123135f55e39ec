#pragma once

#include "checkpoint/ggml_type.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace kernelpath::engines::llamacpp {

// A GPU as the CUDA backend numbers it: 100 x major + 10 x minor, or for AMD kAmdOffset plus the
// gfx number read as hexadecimal.
inline constexpr std::int64_t kAmdOffset = 0x1000000;

// What the CUDA (or HIP) backend was built for.
struct CudaBuild {
  std::vector<std::int64_t> architectures;  // 750, 800 …; empty for HIP
  bool all_kv_pairs = false;                // GGML_CUDA_FA_ALL_QUANTS
  // 50, 61, 70 belong to builds with CUDA 12; 120 and 121 need 12.8 and 12.9.
  static CudaBuild cuda12();
  static CudaBuild cuda13();
};

// One call of the attention operation.
struct AttentionCall {
  std::int64_t cc = 0;
  std::int64_t head_size_k = 0;
  std::int64_t head_size_v = 0;
  const checkpoint::GgmlType* type_k = nullptr;
  const checkpoint::GgmlType* type_v = nullptr;
  std::int64_t n_head = 0;
  std::int64_t n_head_kv = 0;
  std::int64_t n_q = 1;       // tokens of a stream
  std::int64_t n_kv = 256;    // cells that the graph sees
  std::int64_t n_stream = 1;  // sequences
  bool mask = true;
  double max_bias = 0;  // ALiBi
  double logit_softcap = 0;
  std::int64_t n_kv_max = 0;  // bound on visible positions that the graph gives; 0: none
};

enum class CudaKernel : std::uint8_t { kNone, kTile, kVec, kMma };
std::string_view cuda_kernel_name(CudaKernel kernel);  // "NONE", "TILE", "VEC", "MMA_F16"

struct KernelPick {
  CudaKernel kernel = CudaKernel::kNone;             // kNone: the operation goes to the CPU
  std::string_view refusal = {};                     // why kNone
  std::int64_t ncols1 = 0;                           // tokens of a block
  std::int64_t ncols2 = 0;                           // heads of a group in a block
  bool sparse = false;                               // gathers the visible positions
  const checkpoint::GgmlType* vec_type_k = nullptr;  // of the compiled VEC instance
  const checkpoint::GgmlType* vec_type_v = nullptr;
  bool vec_fallback_f16 = false;  // no instance for the pair: both are converted on every call
  bool k_converted = false;       // to f16, before the kernel
  bool v_converted = false;
  bool aborts = false;  // no variant fits; the engine ends the process
};

// Source: llama.cpp 0c1e5709, ggml/src/ggml-cuda/fattn.cu, fattn-tile.cuh, fattn-mma-f16.cuh,
// common.cuh.
KernelPick pick_cuda_kernel(const CudaBuild& build, const AttentionCall& call);

}  // namespace kernelpath::engines::llamacpp
