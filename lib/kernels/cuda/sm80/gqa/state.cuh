#pragma once

#include "kernels/cuda/sm80/gqa/load.cuh"

// What a warp keeps of the rows that it works on, and which elements of Q and O its lanes hold.
namespace kernelpath::kernels::cuda::sm80 {

inline constexpr float kLog2E = 1.4426950408889634F;
inline constexpr float kLn2 = 0.6931471805599453F;

// e2m1 codes as f16 are short of this factor, which the f32 scales of scores and output carry: in
// f16 it would overflow together with block scales from 4 on.
inline constexpr float kE2m1Factor = 16384.0F;

template <class Config>
struct WarpState {
  static constexpr int kDimTiles = Config::kDim / 16;
  static constexpr int kRowTiles = Config::kRowTiles;
  // Fragments of Q^T: [step of 16 elements][row tile].
  std::uint32_t q[kDimTiles][kRowTiles][2];
  float o[kDimTiles][kRowTiles][4];
  // Of this lane's columns 2t and 2t + 1 of each row tile. The maximum may lag behind by
  // Config::kLag; the sum is of this lane's tokens only.
  float maximum[kRowTiles][2];
  float base[kRowTiles][2];  // the maximum, or 0 where no token has been seen
  float sum[kRowTiles][2];
  float scale[kRowTiles][2];      // from a score to a base-2 exponent
  float cap_scale[kRowTiles][2];  // with a soft cap: from a dot product to units of the cap
  bool unset;                     // some row of this warp has no maximum

  __device__ void clear() {
    unset = true;
#pragma unroll
    for (int n = 0; n < kRowTiles; ++n) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        maximum[n][j] = -INFINITY;
        base[n][j] = 0.0F;
        sum[n][j] = 0.0F;
      }
#pragma unroll
      for (int m = 0; m < kDimTiles; ++m) {
#pragma unroll
        for (int i = 0; i < 4; ++i) o[m][n][i] = 0.0F;
      }
    }
  }
};

template <class Config>
inline constexpr bool kUsesBf16 = Config::kType == attention::DataType::kBf16;
template <class Config>
inline constexpr bool kIsNvfp4 = Config::kType == attention::DataType::kNvfp4;

// Where tiles that are worked on begin in shared memory: their K (V is kSideBytes further) and with
// nvfp4 their scales of K (those of V are kScaleBytes further).
struct TilePlace {
  std::uint32_t side = 0;
  std::uint32_t scales = 0;
};

// What is the same for all steps of a segment.
struct SegmentRows {
  int row_begin = 0;  // of the request's query rows
  int rows = 0;
  TokenRange seen_by_all = {};  // tokens of steps inside need no mask
};

// The row of the pass that stands in a column of row tile n.
template <class Config>
__device__ inline int row_of_column(int n, int column) {
  return n * Config::kTileRows + column % Config::kTileRows;
}

// The element of a head in row `half` * 8 + c of the M-tile m of O^T: what ldmatrix and the
// conversions of each type make of the bytes of V.
template <class Config>
__device__ inline int element_of(int m, int half, int c) {
  if constexpr (kIsNvfp4<Config>) {
    return (m >> 1) * 32 + c * 4 + (m & 1) + half * 2;
  } else if constexpr (Config::kRowBytes == Config::kDim) {
    return m * 16 + c * 2 + half;
  } else {
    return m * 16 + half * 8 + c;
  }
}

// Whether this lane's part of O means something: with nvfp4, elements of a chunk's first block in
// columns 0 to 3 and of its second in columns 4 to 7.
template <class Config>
__device__ inline bool has_values(int lane) {
  return !kIsNvfp4<Config> || lane >> 4 == (lane >> 1 & 1);
}

// The first of the two elements of Q that are fetched for register `r` of the fragment of step k,
// lane group t. With nvfp4, the odd and the even elements of a word of codes stand in two steps:
// the first registers of the steps 2i and 2i + 1 hold elements (0, 2) and (1, 3), fetched as (0, 1)
// and (2, 3).
template <class Config>
__device__ inline int query_element(int k, int r, int t) {
  if constexpr (kIsNvfp4<Config>) {
    return t * (Config::kDim / 4) + (k >> 1) * 8 + (k & 1) * 2 + r * 4;
  } else if constexpr (Config::kRowBytes == Config::kDim) {
    return k * 16 + t * 4 + r * 2;
  } else {
    return k * 16 + r * 8 + t * 2;
  }
}

// This lane's row of the four matrices {rows 0-7, rows 8-15} × {chunk 0, chunk 1} of a side.
template <class Config>
__device__ inline int matrix_offset(int lane) {
  return Swizzle<Config>::offset(lane & 15, lane >> 4);
}

}  // namespace kernelpath::kernels::cuda::sm80
