#pragma once

#include "attention/data_type.h"

namespace kernelpath::kernels::cuda::sm80 {

// Stages of the ring: wait_copies() knows so many.
inline constexpr int kMaxStages = 8;

// The shape of one instantiation: how K and V are stored, the head size that it is laid out for
// (smaller ones leave the rest of a row empty) and how many rows of queries share a pass.
template <attention::DataType Type, int Dim, int RowTiles>
struct DecodeConfig {
  static constexpr attention::DataType kType = Type;
  static constexpr int kDim = Dim;
  static constexpr int kRowTiles = RowTiles;  // of 8 query rows each, the N of an MMA
  static constexpr int kRows = 8 * kRowTiles;
  static constexpr int kTokens = 16;  // a warp's step, the M of an MMA
  static constexpr int kRowBytes = Dim * attention::bits_of(Type) / 8;
  static constexpr int kChunks = kRowBytes / 16;  // what one cp.async and one ldmatrix row moves
  static constexpr int kSideBytes = kTokens * kRowBytes;
  static constexpr int kScaleRowBytes =
      Type == attention::DataType::kNvfp4 ? Dim / static_cast<int>(attention::kNvfp4Block) : 0;
  static constexpr int kScaleBytes = kTokens * kScaleRowBytes;
  static constexpr int kStepBytes = 2 * (kSideBytes + kScaleBytes);
  // Eight warps, unless three steps of them do not fit into shared memory.
  static constexpr int kWarps = kStepBytes >= 16384 ? 4 : 8;
  static constexpr int kThreads = 32 * kWarps;
  // Warps merge through shared memory, 8 rows of so many elements at a time. The padding keeps the
  // rows that one store instruction touches in different banks.
  static constexpr int kMergeDims = Dim < 128 ? Dim : 128;
  static constexpr int kMergePitch = kMergeDims + 4;
  static constexpr int kMergeBytes = kWarps * 8 * kMergePitch * 4;
  static constexpr int kStateBytes = kWarps * kRows * 8;
  static constexpr int kFixedBytes = kMergeBytes + kStateBytes + 16;

  static constexpr int stage_bytes() { return kWarps * kStepBytes; }
};

}  // namespace kernelpath::kernels::cuda::sm80
