#pragma once

#include "kernels/cuda/sm80/gqa/kernel.h"
#include "kernels/weight_matrix.h"

#include <cstddef>
#include <cstdint>
#include <cuda_runtime_api.h>

// What gemv.cpp and the kernel units of this folder share.
namespace kernelpath::kernels::cuda::sm80 {

inline constexpr int kGemvRows = 16;    // of a block: one tile of the tensor cores
inline constexpr int kGemvColumns = 8;  // of a tile: tokens
inline constexpr int kGemvTurn = 8;     // pieces of a row that a warp takes at a time
inline constexpr int kGemvLeastWarps = 4;
inline constexpr int kGemvMostWarps = 16;

// A piece is 16 bytes of a row.
struct GemvKernelParams {
  const std::byte* weights = nullptr;
  std::int64_t row_bytes = 0;
  std::int32_t rows = 0;
  std::int32_t pieces = 0;  // of a row
  const std::byte* x = nullptr;
  std::int64_t x_token_bytes = 0;
  std::byte* y = nullptr;
  std::int64_t y_token_bytes = 0;
  std::int32_t tokens = 0;
  const std::byte* scales = nullptr;  // or null: 1
  std::int64_t scale_row_bytes = 0;
  FastDivisor block_rows = {};    // that share a scale
  FastDivisor block_pieces = {};  // that do; nvfp4, whose pieces have two scales, ignores it
  float scale = 1.0F;
  std::int32_t warps = kGemvLeastWarps;
  std::int32_t overlap_launches = 0;  // the weights may be read before earlier launches have ended
};

// Warps that share the columns of a block's rows: enough blocks or, of few rows, enough warps in
// each to keep every multiprocessor reading, and no more than there is work for.
constexpr int gemv_warps(std::int64_t rows, std::int64_t pieces, int num_sms) {
  const std::int64_t tiles = (rows + kGemvRows - 1) / kGemvRows;
  const std::int64_t turns = (pieces + kGemvTurn - 1) / kGemvTurn;
  int warps = tiles <= std::int64_t{2} * num_sms ? kGemvMostWarps : kGemvMostWarps / 2;
  while (warps > kGemvLeastWarps && turns < warps) warps /= 2;
  return warps;
}

template <WeightFormat Format>
cudaError_t launch_gemv_kernel(const GemvKernelParams& params, cudaStream_t stream);

}  // namespace kernelpath::kernels::cuda::sm80
