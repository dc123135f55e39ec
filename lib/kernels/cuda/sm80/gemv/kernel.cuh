#pragma once

#include "kernels/cuda/sm80/gemv/weights.cuh"

// y = W x for up to 8 tokens.
//
// Tile: a block takes 16 rows; its warps take turns at the columns, a line of 128 bytes of each row
// a turn. Weights go from memory to registers, as they lie, and from there into products of tensor
// cores (m16n8k16) whose 8 columns are the tokens. Warps are summed at the end, in their order.
// Shared memory: 8 kB for those sums. Bytes moved: the weights once, x through the L1, y once.
// Limit: the linear read of the weights, of which 32 warps an SM keep up to 64 kB under way; the
// first may be asked for before earlier launches have ended.
namespace kernelpath::kernels::cuda::sm80 {

inline constexpr int kGemvMostThreads = 32 * kGemvMostWarps;
inline constexpr int kGemvSteps = kGemvTurn / 4;

// Weights are read once: past the L1, in whole lines. Zeros where there is nothing to read.
__device__ inline void load_piece(const std::byte* from, bool read, std::uint32_t (&to)[4]) {
#pragma unroll
  for (std::uint32_t& word : to) word = 0;
  if (!read) return;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "l"(from));
}

// What a lane multiplies: its two rows and its token.
struct GemvLane {
  const GemvKernelParams& params;
  int column;  // of the four that share a row and a token
  std::int64_t rows[2];
  bool has[2];
  const std::byte* weights[2];
  const std::byte* token;
  bool has_token;

  __device__ explicit GemvLane(const GemvKernelParams& call)
      : params(call), column(static_cast<int>(threadIdx.x) % 4) {
    const int group = static_cast<int>(threadIdx.x) % 32 / 4;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      rows[i] = std::int64_t{blockIdx.x} * kGemvRows + group + i * (kGemvRows / 2);
      has[i] = rows[i] < params.rows;
      weights[i] = params.weights + rows[i] * params.row_bytes;
    }
    token = params.x + group * params.x_token_bytes;
    has_token = group < params.tokens;
  }

  __device__ void load(int step_piece, PiecePair& to) const {
    const int piece = step_piece + column;
    const bool read = piece < params.pieces;
    load_piece(weights[0] + std::int64_t{piece} * 16, read && has[0], to.first);
    load_piece(weights[1] + std::int64_t{piece} * 16, read && has[1], to.second);
  }

  // Eight activations of the columns of a lane's piece: vector i of Weights::kVectors. They may
  // come from the launch before: not through the read-only path.
  template <class Weights>
  __device__ uint4 activations(int piece, int i) const {
    const auto* const from = reinterpret_cast<const uint4*>(token) + piece * Weights::kVectors;
    return has_token && piece < params.pieces ? from[i] : uint4{0, 0, 0, 0};
  }

  template <class Weights>
  __device__ void multiply(int step_piece, const PiecePair& pieces, float (&sum)[4]) const {
    const auto scales_of = [&](int i) {
      return Weights::load_scales(params, has[i] ? rows[i] : 0, step_piece, column);
    };
    const auto x = [&](int i) { return activations<Weights>(step_piece + column, i); };
    Weights::multiply(pieces, scales_of(0), scales_of(1), x, sum);
  }
};

// Sums of the warps [warp][token][row] to y.
template <bool Bf16>
__device__ inline void store_rows(const GemvKernelParams& params, const float* sums,
                                  float final_scale) {
  for (int i = static_cast<int>(threadIdx.x); i < kGemvRows * params.tokens;
       i += static_cast<int>(blockDim.x)) {
    const std::int64_t row = std::int64_t{blockIdx.x} * kGemvRows + i % kGemvRows;
    if (row >= params.rows) continue;
    float sum = 0.0F;
    for (int warp = 0; warp < params.warps; ++warp) {
      sum += sums[warp * kGemvRows * kGemvColumns + i];
    }
    const std::uint32_t bits = pack_16<Bf16>(sum * final_scale, 0.0F);
    std::byte* const token = params.y + i / kGemvRows * params.y_token_bytes;
    reinterpret_cast<std::uint16_t*>(token)[row] = static_cast<std::uint16_t>(bits);
  }
}

template <WeightFormat Format>
__global__ void __launch_bounds__(kGemvMostThreads, 2)
    gemv_kernel(const __grid_constant__ GemvKernelParams params) {
  using Weights = GemvWeights<Format>;
  __shared__ float sums[kGemvMostWarps * kGemvRows * kGemvColumns];
  allow_next_launch();
  const GemvLane own(params);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  float sum[4] = {};
  bool waited = false;
  for (int at = warp * kGemvTurn; at < params.pieces; at += params.warps * kGemvTurn) {
    PiecePair pieces[kGemvSteps];
#pragma unroll
    for (int step = 0; step < kGemvSteps; ++step) own.load(at + 4 * step, pieces[step]);
    if (!waited) {
      wait_for_launch_before();
      waited = true;
    }
#pragma unroll
    for (int step = 0; step < kGemvSteps; ++step) {
      own.multiply<Weights>(at + 4 * step, pieces[step], sum);
    }
  }
  if (!waited) wait_for_launch_before();
  const int group = static_cast<int>(threadIdx.x) % 32 / 4;
  float* const to = sums + (warp * kGemvColumns + own.column * 2) * kGemvRows + group;
  to[0] = sum[0];
  to[kGemvRows] = sum[1];
  to[kGemvRows / 2] = sum[2];
  to[kGemvRows + kGemvRows / 2] = sum[3];
  __syncthreads();
  store_rows<Weights::kBf16>(params, sums, params.scale * Weights::kFinalScale);
}

template <WeightFormat Format>
cudaError_t launch_gemv_kernel(const GemvKernelParams& params, cudaStream_t stream) {
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>((params.rows - 1) / kGemvRows + 1));
  config.blockDim = dim3(static_cast<unsigned>(params.warps) * 32);
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = params.overlap_launches != 0 ? 1 : 0;
  return cudaLaunchKernelEx(&config, gemv_kernel<Format>, params);
}

}  // namespace kernelpath::kernels::cuda::sm80
