#pragma once

#include "kernels/cuda/sm90/prefill/barriers.cuh"
#include "kernels/cuda/sm90/prefill/widen.cuh"
#include "kernels/cuda/sm90/prefill/work.cuh"

// What the loading warpgroup does: K and V of each tile as places in shared memory become empty.
namespace kernelpath::kernels::cuda::sm90 {

struct TileRange {
  int first = 0;
  int count = 0;
};

// Barriers: of each place of K and of V, whether it is full and whether it is empty again.
struct Barriers {
  std::uint32_t first = 0;
  __device__ std::uint32_t k_full(int tile) const { return first + tile % 2 * 8; }
  __device__ std::uint32_t v_full(int tile) const { return first + 16 + tile % 2 * 8; }
  __device__ std::uint32_t k_empty(int tile) const { return first + 32 + tile % 2 * 8; }
  __device__ std::uint32_t v_empty(int tile) const { return first + 48 + tile % 2 * 8; }
};
// Each place is used by every second tile: the parity of its uses before `tile`.
__device__ __forceinline__ unsigned parity_of(int tile) {
  return static_cast<unsigned>(tile / 2 & 1);
}

// Where rows of one side of a request lie.
struct SideRows {
  const PrefillKernelParams& params;
  const Work& work;
  const sm80::SideParams& side;
  const std::int32_t* table;

  __device__ SideRows(const PrefillKernelParams& given, const Work& of, const sm80::SideParams& one)
      : params(given),
        work(of),
        side(one),
        table(given.block_table + of.request * given.block_table_stride) {}

  // Bytes from the start of the side to row `row` after `token`, which lies in the same page.
  __device__ std::int64_t offset_of(int token, int row) const {
    // Tokens that are not read name no page.
    const auto read =
        static_cast<std::uint32_t>(min(max(token, work.tokens.first), work.tokens.last - 1));
    const std::uint32_t page = params.page_size.quotient(read);
    const int slot = token + row - static_cast<int>(page * params.page_size.divisor);
    return static_cast<std::int64_t>(
               static_cast<std::uint64_t>(static_cast<std::uint32_t>(__ldg(table + page))) *
               side.page_bytes) +
           static_cast<std::int64_t>(slot) * side.token_bytes +
           static_cast<std::int64_t>(side.head_bytes) * work.kv_head;
  }
  // Whether 16 tokens from a multiple of 16 on lie in one page.
  __device__ bool pages_hold_groups() const { return params.page_size.divisor % 16 == 0; }
};

// Calls one(i, group) for the groups of 16 keys that this warp loads.
template <class Config, class One>
__device__ __forceinline__ void for_each_group(const One& one) {
#pragma unroll
  for (int i = 0; i < Config::kGroups; ++i) {
    const int group = static_cast<int>(threadIdx.x) / 32 + i * (Config::kLoaders / 32);
    if (Config::kKeys % (Config::kLoaders / 2) != 0 && group >= Config::kKeys / 16) break;
    one(i, group);
  }
}

// Calls copy(pass, each, offset, read) for every chunk of this lane of the 16 rows from `token` on:
// where the chunk begins in the side, in bytes, and whether it is read.
template <class Map, class Copy>
__device__ __forceinline__ void for_each_chunk(const SideRows& rows, const LaneRows<Map>& lane,
                                               int token, const Copy& copy) {
  const auto copy_row = [&](int pass, std::int64_t from) {
    const bool is_read = rows.work.is_read(token + lane.row_of(pass));
#pragma unroll
    for (int each = 0; each < Map::kEach; ++each) {
      const int chunk = lane.chunk_of(each);
      if (Map::kChunks % Map::kLanes != 0 && chunk >= Map::kChunks) continue;
      copy(pass, each, from + chunk * 16, is_read && chunk < rows.side.chunks);
    }
  };
  if (rows.pages_hold_groups()) {
    const std::int64_t from = rows.offset_of(token, lane.row);
#pragma unroll
    for (int pass = 0; pass < Map::kPasses; ++pass) {
      copy_row(pass, from + static_cast<std::int64_t>(pass * Map::kRows) * rows.side.token_bytes);
    }
    return;
  }
#pragma unroll 1
  for (int pass = 0; pass < Map::kPasses; ++pass) {
    copy_row(pass, rows.offset_of(token + lane.row_of(pass), 0));
  }
}

// Keys [tile * kKeys, (tile + 1) * kKeys) of a side; those that nobody sees become zeros.
template <class Config, int Chunks>
__device__ __forceinline__ void load_side(const SideRows& rows, int tile, std::uint32_t to) {
  using Map = LaneMap<Chunks>;
  const LaneRows<Map> lane(static_cast<int>(threadIdx.x) % 32);
  for_each_group<Config>([&](int /*i*/, int group) {
    const std::uint32_t first =
        to + panel_offset(Config::kPanelBytes, group * 16 + lane.row, lane.chunk);
    for_each_chunk(rows, lane, tile * Config::kKeys + group * 16,
                   [&](int pass, int each, std::int64_t from, bool read) {
                     sm80::copy_async_16_or_zero(
                         LaneRows<Map>::move(first, Config::kPanelBytes, pass, each),
                         rows.side.data + from, read);
                   });
  });
}

// Of 16-bit values. What a group of copies brought is announced when the next one is under way, or
// before waiting for an empty place: those who are to empty it may be waiting for what has arrived.
class Announcer {
 public:
  // A group of copies that fills the place of `barrier` has been issued.
  __device__ void started(std::uint32_t barrier) {
    sm80::commit_copies();
    if (unannounced_ != 0) announce<1>();
    unannounced_ = barrier;
  }
  __device__ void wait_until_empty(std::uint32_t barrier, unsigned parity) {
    if (is_over(barrier, parity)) return;
    finish();
    wait_for(barrier, parity);
  }
  __device__ void finish() {
    if (unannounced_ != 0) announce<0>();
    unannounced_ = 0;
  }

 private:
  template <int GroupsUnderWay>
  __device__ void announce() {
    sm80::wait_copies<GroupsUnderWay>();
    publish_shared();
    arrive(unannounced_);
  }

  std::uint32_t unannounced_ = 0;  // the barrier of the group before; 0: none
};

template <class Config>
__device__ __forceinline__ void load_tiles(const PrefillKernelParams& params, const Work& work,
                                           std::uint32_t shared, TileRange tiles) {
  using Memory = PrefillMemory<Config>;
  const Barriers barriers{shared + Memory::kBarriers};
  const SideRows k(params, work, params.k);
  const SideRows v(params, work, params.v);
  Announcer announcer;
#pragma unroll 1
  for (int tile = 0; tile < tiles.count; ++tile) {
    const int place = tile % 2;
    // The first use of a place does not wait.
    if (tile >= 2) announcer.wait_until_empty(barriers.k_empty(tile), parity_of(tile - 2));
    load_side<Config, Config::kChunksK>(k, tiles.first + tile,
                                        shared + Memory::kK + place * Config::kKBytes);
    announcer.started(barriers.k_full(tile));
    if (tile >= 2) announcer.wait_until_empty(barriers.v_empty(tile), parity_of(tile - 2));
    load_side<Config, Config::kChunksV>(v, tiles.first + tile,
                                        shared + Memory::kV + place * Config::kVBytes);
    announcer.started(barriers.v_full(tile));
  }
  announcer.finish();
}

// Values of fewer bits come as they are stored into slots of the thread that will widen them, one
// side of a tile at a time and two of them ahead.
template <class Config, int Chunks>
__device__ __forceinline__ void fetch_side(const SideRows& rows, int tile, std::uint32_t stored,
                                           std::uint32_t scales) {
  using Map = LaneMap<Chunks>;
  const LaneRows<Map> lane(static_cast<int>(threadIdx.x) % 32);
  for_each_group<Config>([&](int i, int group) {
    for_each_chunk(rows, lane, tile * Config::kKeys + group * 16,
                   [&](int pass, int each, std::int64_t from, bool read) {
                     const int slot =
                         (i * Map::kSlots + pass * Map::kEach + each) * Config::kLoaders;
                     sm80::copy_async_16_or_zero(stored + slot * 16, rows.side.data + from, read);
                     if constexpr (Config::kNvfp4) {
                       // A scale stands for 8 bytes; those of two chunks lie in one word.
                       const std::int64_t word = from / 8 & ~std::int64_t{3};
                       sm80::copy_async_small_or_zero<4>(scales + slot * 4,
                                                         rows.side.block_scales + word, read);
                     }
                   });
  });
}

template <class Config, int Chunks>
__device__ __forceinline__ void widen_side(std::uint32_t stored, std::uint32_t scales,
                                           std::uint32_t to) {
  using Map = LaneMap<Chunks>;
  const LaneRows<Map> lane(static_cast<int>(threadIdx.x) % 32);
  for_each_group<Config>([&](int i, int group) {
#pragma unroll 2
    for (int at = 0; at < Map::kSlots; ++at) {
      const int row = group * 16 + lane.row_of(at / Map::kEach);
      const int chunk = lane.chunk_of(at % Map::kEach);
      if (Map::kChunks % Map::kLanes != 0 && chunk >= Map::kChunks) continue;
      const int slot = (i * Map::kSlots + at) * Config::kLoaders;
      if constexpr (Config::kNvfp4) {
        widen_nvfp4(stored + slot * 16, scales + slot * 4, chunk % 2, [&](int part) {
          return to + panel_offset(Config::kPanelBytes, row, chunk * 4 + part);
        });
      } else {
        widen_fp8<Config::kType>(stored + slot * 16, [&](int part) {
          return to + panel_offset(Config::kPanelBytes, row, chunk * 2 + part);
        });
      }
    }
  });
}

template <class Config>
__device__ __forceinline__ void load_and_widen_tiles(const PrefillKernelParams& params,
                                                     const Work& work, std::uint32_t shared,
                                                     TileRange tiles) {
  using Memory = PrefillMemory<Config>;
  const Barriers barriers{shared + Memory::kBarriers};
  const SideRows k(params, work, params.k);
  const SideRows v(params, work, params.v);
  const auto own = static_cast<std::uint32_t>(threadIdx.x);
  const auto stored = [&](int side) {
    return shared + Memory::kStored + side * Memory::kStoredBytes + own * 16;
  };
  const auto scales = [&](int side) {
    return shared + Memory::kScales + side * Memory::kScaleBytes + own * 4;
  };
  // Both sides of tile `tile`, or nothing.
  const auto fetch = [&](int side, int tile) {
    if (tile < tiles.count && side == 0) {
      fetch_side<Config, Config::kChunksK>(k, tiles.first + tile, stored(0), scales(0));
    } else if (tile < tiles.count) {
      fetch_side<Config, Config::kChunksV>(v, tiles.first + tile, stored(1), scales(1));
    }
    sm80::commit_copies();
  };
  fetch(0, 0);
  fetch(1, 0);
#pragma unroll 1
  for (int tile = 0; tile < tiles.count; ++tile) {
    const int place = tile % 2;
    sm80::wait_copies<1>();
    if (tile >= 2) wait_for(barriers.k_empty(tile), parity_of(tile - 2));
    widen_side<Config, Config::kChunksK>(stored(0), scales(0),
                                         shared + Memory::kK + place * Config::kKBytes);
    publish_shared();
    arrive(barriers.k_full(tile));
    fetch(0, tile + 1);
    sm80::wait_copies<1>();
    if (tile >= 2) wait_for(barriers.v_empty(tile), parity_of(tile - 2));
    widen_side<Config, Config::kChunksV>(stored(1), scales(1),
                                         shared + Memory::kV + place * Config::kVBytes);
    publish_shared();
    arrive(barriers.v_full(tile));
    fetch(1, tile + 1);
  }
}

}  // namespace kernelpath::kernels::cuda::sm90
