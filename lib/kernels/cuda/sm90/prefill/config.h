#pragma once

#include "attention/data_type.h"

namespace kernelpath::kernels::cuda::sm90 {

// The shape of one instantiation: how K and V are stored, and the head sizes that it is laid out
// for (smaller ones leave the rest of a row zero). Tiles lie in shared memory as panels of 64
// elements of each row, 128 bytes, swizzled as describe() says.
template <attention::DataType Type, int DimK, int DimV>
struct PrefillConfig {
  static constexpr attention::DataType kType = Type;
  static constexpr bool kBf16 = Type == attention::DataType::kBf16;  // of the products; else f16
  static constexpr bool kNvfp4 = Type == attention::DataType::kNvfp4;
  static constexpr bool kWidens = attention::bits_of(Type) < 16;  // the loading warps do
  static constexpr int kDimK = DimK;
  static constexpr int kDimV = DimV;

  // Warpgroups that multiply, of 64 queries each: a third one has room where rows are short.
  static constexpr int kMultipliers = DimK <= 64 ? 3 : 2;
  static constexpr int kQueries = 64 * kMultipliers;

  // Keys of a tile: as many as shared memory has room for twice, which large head sizes do not
  // leave for 128. What is widened also lies there as it was stored.
  static constexpr int keys() {
    if (DimK + DimV <= 256) return 128;
    if (DimV <= 128) return kWidens ? 96 : 128;
    return kWidens ? 64 : DimK <= 192 ? 96 : 80;
  }
  static constexpr int kKeys = keys();

  static constexpr int kPanelsK = (DimK + 63) / 64;
  static constexpr int kPanelsV = (DimV + 63) / 64;
  static constexpr int kPanelBytes = kKeys * 128;  // of K and V
  static constexpr int kQueryPanelBytes = kQueries * 128;
  static constexpr int kQBytes = kPanelsK * kQueryPanelBytes;
  static constexpr int kKBytes = kPanelsK * kPanelBytes;
  static constexpr int kVBytes = kPanelsV * kPanelBytes;

  // 16-byte chunks of a stored row.
  static constexpr int kChunksK = DimK * attention::bits_of(Type) / 128;
  static constexpr int kChunksV = DimV * attention::bits_of(Type) / 128;

  // Another warpgroup loads. A thread's registers, 65,536 of a block in steps of 8.
  static constexpr int kLoaders = 128;
  static constexpr int kThreads = kLoaders + 128 * kMultipliers;
  static constexpr int kLoaderRegisters = kMultipliers == 3 ? 32 : kWidens ? 56 : 40;
  static constexpr int kOtherRegisters = (512 - kLoaderRegisters) / kMultipliers / 8 * 8;
  static constexpr int kGroups = (kKeys / 16 + kLoaders / 32 - 1) / (kLoaders / 32);  // of a warp
};

// How the lanes of a warp share 16 rows of so many 16-byte chunks: kLanes of them to a row, which
// they walk through together; kPasses times kRows rows.
template <int Chunks>
struct LaneMap {
  static constexpr int lanes() {
    int most = 2;
    while (most < 32 && Chunks % (most * 2) == 0) most *= 2;
    return most;
  }
  static constexpr int kChunks = Chunks;
  static constexpr int kLanes = lanes();
  static constexpr int kRows = 32 / kLanes;
  static constexpr int kPasses = 16 / kRows;
  static constexpr int kEach = (Chunks + kLanes - 1) / kLanes;
  static constexpr int kSlots = kPasses * kEach;  // chunks of a lane
};

// Where the parts of shared memory begin, in bytes.
template <class Config>
struct PrefillMemory {
  // Of one side of a tile as it was stored: 16 bytes a chunk, and 4 of block scales.
  static constexpr int slots() {
    const int k = LaneMap<Config::kChunksK>::kSlots;
    const int v = LaneMap<Config::kChunksV>::kSlots;
    return Config::kWidens ? Config::kGroups * (k > v ? k : v) : 0;
  }
  static constexpr int kSlots = slots();
  static constexpr int kStoredBytes = kSlots * Config::kLoaders * 16;
  static constexpr int kScaleBytes = Config::kNvfp4 ? kSlots * Config::kLoaders * 4 : 0;

  static constexpr int kQ = 0;
  static constexpr int kK = kQ + Config::kQBytes;
  static constexpr int kV = kK + 2 * Config::kKBytes;
  static constexpr int kStored = kV + 2 * Config::kVBytes;
  static constexpr int kScales = kStored + 2 * kStoredBytes;
  static constexpr int kBarriers = kScales + 2 * kScaleBytes;
  static constexpr int kBytes = kBarriers + 64;
  static_assert(kBytes <= 227 * 1024, "what a block of sm_90 can have");
};

}  // namespace kernelpath::kernels::cuda::sm90
