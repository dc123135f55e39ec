#pragma once

#include "attention/data_type.h"

namespace kernelpath::kernels::cuda::sm80 {

// The shape of one instantiation: how K and V are stored, the head size that it is laid out for
// (smaller ones leave the rest of a row empty) and how many rows of queries share a pass.
template <attention::DataType Type, int Dim, int RowTiles>
struct DecodeConfig {
  static constexpr attention::DataType kType = Type;
  static constexpr bool kNvfp4 = Type == attention::DataType::kNvfp4;
  static constexpr int kDim = Dim;
  // Of 8 columns each, the N of an MMA. A column is a query row; in nvfp4 there are four rows, each
  // twice, because the two columns take the scales of different blocks of V (nvfp4.cuh).
  static constexpr int kRowTiles = RowTiles;
  static constexpr int kTileRows = kNvfp4 ? 4 : 8;
  static constexpr int kRows = kTileRows * kRowTiles;
  static constexpr int kRowBytes = Dim * attention::bits_of(Type) / 8;
  static constexpr int kChunks = kRowBytes / 16;  // what one cp.async and one ldmatrix row moves
  static constexpr int kTileTokens = 16;          // the M of an MMA

  // Scores may pass the maximum that weights are relative to by kLag (base 2) before it is renewed,
  // and it is kHeadroom above the largest score then. Together they are 8; in nvfp4, weights are
  // multiplied with block scales up to 448 in f16.
  static constexpr float kHeadroom = kNvfp4 ? 2.0F : 0.0F;
  static constexpr float kLag = 8.0F - kHeadroom;

  // A warp's step: as many tiles as make 8 kB of K and V, so that what a step costs besides its
  // arithmetic is spread over many tokens and tiles wait for each other less. Several row tiles
  // give as much independent work, and need the registers.
  static constexpr int token_tiles() {
    if (RowTiles > 2) return 1;
    const int tiles = 8192 / (2 * kTileTokens * kRowBytes);
    const int most = RowTiles > 1 ? 2 : 4;
    return tiles < 1 ? 1 : tiles > most ? most : tiles;
  }
  static constexpr int kTokenTiles = token_tiles();
  static constexpr int kTokens = kTileTokens * kTokenTiles;
  // Tiles whose arithmetic is one piece of code, where it must be short.
  static constexpr int kFewTiles = kTokenTiles < 2 ? kTokenTiles : 2;
  static constexpr int kSideBytes = kTokens * kRowBytes;
  static constexpr int kScaleRowBytes = kNvfp4 ? Dim / static_cast<int>(attention::kNvfp4Block) : 0;
  static constexpr int kScaleBytes = kTokens * kScaleRowBytes;
  static constexpr int kStepBytes = 2 * (kSideBytes + kScaleBytes);

  // Warps: eight; steps of 16 kB leave room for four. Steps in the ring: two of eight warps keep 64
  // to 128 kB under way on an SM, and more make the whole device slower.
  static constexpr int kWarps = kStepBytes >= 16384 ? 4 : 8;
  static constexpr int kStages = 2;
  // Whether a place of the ring is filled as soon as its step has been read, or when the next step
  // has arrived: with all places of eight warps under way at all times the device reads more
  // slowly. (nvfp4, which waits for its arithmetic, has a loop of its own.)
  static constexpr bool kFillsAtOnce = kWarps == 4;
  // Whether a block merges an item that it shares as soon as the other parts should be there, or
  // when it has nothing else left to do: where the loop needs the registers.
  static constexpr bool kMergesEarly = RowTiles == 1 && !kNvfp4;
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kRingBytes = kWarps * kStages * kStepBytes;

  // Warps merge through shared memory, a row tile of so many elements at a time. The padding keeps
  // the rows that one store instruction touches in different banks.
  static constexpr int kMergeDims = Dim < 128 ? Dim : 128;  // NOLINT(bugprone-branch-clone): at 128
  static constexpr int kMergePitch = kMergeDims + 4;
  static constexpr int kMergeBytes = kWarps * kTileRows * (kMergePitch * 4 + 8);
  static constexpr int shared_bytes(int merge_buffers) {
    return kRingBytes + merge_buffers * kMergeBytes;
  }
};

}  // namespace kernelpath::kernels::cuda::sm80
