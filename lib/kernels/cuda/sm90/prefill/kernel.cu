#include "kernels/cuda/sm80/gqa/ptx.cuh"
#include "kernels/cuda/sm90/prefill/kernel.h"
#include "kernels/cuda/sm90/prefill/wgmma.cuh"

// Prefill attention over a paged cache of 16-bit values, head size 128.
//
// Tile: 128 queries of one head by 128 keys. Warps: a warpgroup that loads, two of 64 queries each.
// Shared memory: Q 32 kB, K and V two tiles of 32 kB each. While the tensor cores multiply weights
// and values of a tile, the softmax of the next one runs. Limit: the matrix rate; a tile is 2,048
// clocks of it, and 1,024 of exponentials. The longest tiles start first.
namespace kernelpath::kernels::cuda::sm90 {
namespace {

constexpr int kLoaders = 128;  // threads of the warpgroup that loads
constexpr int kThreads = kLoaders + 256;
constexpr int kTile = 128;  // queries, and keys
constexpr int kDim = 128;
constexpr int kHalfBytes = kTile * 128;  // 64 elements of each row of a tile
constexpr int kTileBytes = 2 * kHalfBytes;
constexpr int kBarrierBytes = 128;
constexpr int kSharedBytes = 5 * kTileBytes + kBarrierBytes;  // Q, two of K, two of V
constexpr float kLog2E = 1.4426950408889634F;
constexpr float kLn2 = 0.6931471805599453F;

// What a block works on.
struct Work {
  int request = 0;
  int head = 0;
  int kv_head = 0;
  int first_query = 0;  // of the tile, in the request
  int num_queries = 0;  // of the request
  int query_begin = 0;  // row of the request's first query
  int seq_len = 0;
  TokenRange tokens = {};       // that some query of the tile sees
  TokenRange seen_by_all = {};  // that all of them see
};

__device__ int position_of(const Work& work, int row) {
  return work.seq_len - work.num_queries + work.first_query + row;
}

__device__ Work find_work(const PrefillKernelParams& params) {
  Work work;
  const int block = static_cast<int>(blockIdx.x);
  work.head = block % params.num_heads;
  const int rest = block / params.num_heads;
  work.request = rest % params.num_requests;
  work.first_query = (params.query_tiles - 1 - rest / params.num_requests) * kTile;
  work.kv_head = static_cast<int>(params.group.quotient(static_cast<std::uint32_t>(work.head)));
  work.query_begin = params.query_start[work.request];
  work.num_queries = params.query_start[work.request + 1] - work.query_begin;
  work.seq_len = params.seq_lens[work.request];
  if (work.first_query >= work.num_queries) return work;
  const int rows = min(kTile, work.num_queries - work.first_query);
  const TokenRange first = visible_tokens(params.shape, position_of(work, 0), work.seq_len);
  const TokenRange last = visible_tokens(params.shape, position_of(work, rows - 1), work.seq_len);
  // Ranges grow with the position.
  work.tokens = {first.first, last.last};
  work.seen_by_all = {last.first, first.last};
  return work;
}

// Byte offset of a 16-byte chunk of a row in a tile: two halves of 64 elements, their rows swizzled
// as describe() says.
__device__ int tile_offset(int row, int chunk) {
  return (chunk >> 3) * kHalfBytes + row * 128 + ((chunk & 7) ^ (row & 7)) * 16;
}

// 16 threads to a row of 256 bytes, 8 rows at a time.
__device__ void load_queries(const PrefillKernelParams& params, const Work& work,
                             std::uint32_t to) {
  const int chunk = static_cast<int>(threadIdx.x) % 16;
#pragma unroll 4
  for (int i = 0; i < kTile / 8; ++i) {
    const int row = static_cast<int>(threadIdx.x) / 16 + i * 8;
    const int query = min(work.first_query + row, work.num_queries - 1);
    const std::int64_t element =
        (work.query_begin + static_cast<std::int64_t>(query)) * params.q_stride + work.head * kDim +
        chunk * 8;
    sm80::copy_async_16_or_zero(to + tile_offset(row, chunk), params.q + element * 2,
                                work.first_query + row < work.num_queries);
  }
}

// Rows of 16 tokens that a warp copies together.
struct RowGroup {
  int token = 0;         // the first one
  std::uint32_t to = 0;  // this lane's chunk of the first or second row
};

__device__ __forceinline__ bool is_read(const Work& work, int token) {
  return token >= work.tokens.first && token < work.tokens.last;
}

// All rows lie in one page.
__device__ __forceinline__ void copy_page_group(const Work& work, RowGroup group,
                                                const std::byte* from, std::uint32_t row_bytes) {
  const int own = group.token + static_cast<int>(threadIdx.x) % 32 / 16;
  const bool whole = is_read(work, group.token) && is_read(work, group.token + 15);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const std::uint32_t at = (group.to ^ (2 * i & 7) * 16) + 2 * i * 128;
    sm80::copy_async_16_or_zero(at, from + i * 2 * row_bytes, whole || is_read(work, own + 2 * i));
  }
}

// Keys [tile * 128, tile * 128 + 128) of the request; those that nobody sees become zeros.
__device__ __forceinline__ void load_side(const PrefillKernelParams& params, const Work& work,
                                          const sm80::SideParams& side, int tile,
                                          std::uint32_t to) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int chunk = lane % 16;
  const std::int32_t* const table = params.block_table + work.request * params.block_table_stride;
  const std::byte* const base =
      side.data +
      static_cast<std::uint64_t>(side.head_bytes) * static_cast<unsigned>(work.kv_head) +
      chunk * 16;
  const auto row_at = [&](int token, int row) {
    // Tokens that are not read name no page.
    const auto read =
        static_cast<std::uint32_t>(min(max(token, work.tokens.first), work.tokens.last - 1));
    const std::uint32_t page = params.page_size.quotient(read);
    const int slot = token + row - static_cast<int>(page * params.page_size.divisor);
    return base +
           static_cast<std::uint64_t>(static_cast<std::uint32_t>(__ldg(table + page))) *
               side.page_bytes +
           static_cast<std::int64_t>(slot) * side.token_bytes;
  };
#pragma unroll
  for (int g = static_cast<int>(threadIdx.x) / 32; g < kTile / 16; g += kLoaders / 32) {
    const int row = lane / 16;
    const RowGroup group{tile * kTile + g * 16, to + tile_offset(g * 16 + row, chunk)};
    if (params.page_size.divisor % 16 == 0) {
      copy_page_group(work, group, row_at(group.token, row), side.token_bytes);
      continue;
    }
#pragma unroll 1
    for (int i = 0; i < 8; ++i) {
      const int token = group.token + row + 2 * i;
      const std::uint32_t at = (group.to ^ (2 * i & 7) * 16) + 2 * i * 128;
      sm80::copy_async_16_or_zero(at, row_at(token, 0), is_read(work, token));
    }
  }
}

// The rows of a thread: row and row + 8 of its warp's sixteen.
struct Softmax {
  float maximum[2] = {-INFINITY, -INFINITY};
  float sum[2] = {0.0F, 0.0F};
};

__device__ int row_of_thread() {
  const int thread = static_cast<int>(threadIdx.x) - kLoaders;
  return thread / 32 * 16 + thread % 32 / 4;
}

__device__ __forceinline__ void mask_scores(const PrefillKernelParams& params, const Work& work,
                                            int tile, float (&s)[64]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const TokenRange seen =
        visible_tokens(params.shape, position_of(work, row_of_thread() + half * 8), work.seq_len);
#pragma unroll
    for (int j = 0; j < 16; ++j) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int token = tile * kTile + j * 8 + static_cast<int>(threadIdx.x) % 4 * 2 + i;
        if (token < seen.first || token >= seen.last) s[j * 4 + half * 2 + i] = -INFINITY;
      }
    }
  }
}

// Turns dot products into weights, and returns what O is to be multiplied with.
__device__ __forceinline__ float2 soften(const PrefillKernelParams& params, const Work& work,
                                         int tile, float (&s)[64], Softmax& state) {
  float score_scale = params.score_scale;
  if (params.k.head_scales != nullptr) score_scale *= params.k.head_scales[work.kv_head];
  float scale = score_scale * kLog2E;
  if (params.softcap > 0.0F) {
    const float to_cap = score_scale / params.softcap;
#pragma unroll
    for (int i = 0; i < 64; ++i) {
      const float x = s[i] * to_cap;
      const float e = sm80::exp2_fast(-2.0F * kLog2E * fabsf(x));
      s[i] = copysignf(params.softcap * __fdividef(1.0F - e, 1.0F + e), x);
    }
    scale = kLog2E;
  }
  const int token = tile * kTile;
  if (token < work.seen_by_all.first || token + kTile > work.seen_by_all.last) {
    mask_scores(params, work, tile, s);
  }
  float factor[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float largest = -INFINITY;
#pragma unroll
    for (int j = 0; j < 16; ++j) {
      largest = fmaxf(largest, fmaxf(s[j * 4 + half * 2], s[j * 4 + half * 2 + 1]));
    }
    largest = fmaxf(largest, __shfl_xor_sync(~0U, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(~0U, largest, 2));
    largest = fmaxf(largest * scale, state.maximum[half]);
    const float base = largest == -INFINITY ? 0.0F : largest;
    factor[half] = sm80::exp2_fast(state.maximum[half] - base);
    state.maximum[half] = largest;
    float sum = 0.0F;
#pragma unroll
    for (int j = 0; j < 16; ++j) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int at = j * 4 + half * 2 + i;
        s[at] = sm80::exp2_fast(fmaf(s[at], scale, -base));
        sum += s[at];
      }
    }
    state.sum[half] = state.sum[half] * factor[half] + sum;
  }
  return {factor[0], factor[1]};
}

template <bool Bf16>
__device__ __forceinline__ void write_rows(const PrefillKernelParams& params, const Work& work,
                                           Softmax& state, const float (&o)[64]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float sum = state.sum[half];
    sum += __shfl_xor_sync(~0U, sum, 1);
    sum += __shfl_xor_sync(~0U, sum, 2);
    float maximum = state.maximum[half];
    float factor = 1.0F;
    if (params.sinks != nullptr) {
      const float sink = params.sinks[work.head] * kLog2E;
      const float largest = fmaxf(sink, maximum);
      factor = maximum == -INFINITY ? 0.0F : sm80::exp2_fast(maximum - largest);
      sum = sum * factor + (sink == -INFINITY ? 0.0F : sm80::exp2_fast(sink - largest));
      maximum = largest;
    }
    const int row = work.first_query + row_of_thread() + half * 8;
    if (row >= work.num_queries) continue;
    float scale = params.v.scale * factor;
    if (params.v.head_scales != nullptr) scale *= params.v.head_scales[work.kv_head];
    const bool seen = sum > 0.0F || sum != sum;  // a NaN is handed on
    scale = seen ? scale / sum : 0.0F;
    const std::int64_t token = work.query_begin + static_cast<std::int64_t>(row);
    auto* const to = reinterpret_cast<std::uint32_t*>(
        params.o + (token * params.o_stride + work.head * kDim) * 2);
#pragma unroll
    for (int j = 0; j < 16; ++j) {
      to[j * 4 + static_cast<int>(threadIdx.x) % 4] =
          sm80::pack_16<Bf16>(o[j * 4 + half * 2] * scale, o[j * 4 + half * 2 + 1] * scale);
    }
    if (params.lse != nullptr && threadIdx.x % 4 == 0) {
      params.lse[token * params.num_heads + work.head] =
          seen ? (maximum + sm80::log2_fast(sum)) * kLn2 : -INFINITY;
    }
  }
}

// S = Q K^T of this warpgroup's 64 queries and a tile of keys.
template <bool Bf16>
__device__ __forceinline__ void start_scores(std::uint32_t q, std::uint32_t k, float (&s)[64]) {
  keep_accumulators(s);
  begin_wgmma();
#pragma unroll
  for (int step = 0; step < kDim / 16; ++step) {
    const int at = step / 4 * kHalfBytes + step % 4 * 32;
    multiply_shared<Bf16>(s, describe(q + at), describe(k + at), step > 0);
  }
  commit_wgmma();
}

// O += P V.
template <bool Bf16>
__device__ __forceinline__ void start_values(const std::uint32_t (&p)[8][4], std::uint32_t v,
                                             float (&o)[64]) {
  keep_accumulators(o);
  begin_wgmma();
#pragma unroll
  for (int step = 0; step < kTile / 16; ++step) {
    multiply_registers<Bf16>(o, p[step], describe(v + step * 2048, kHalfBytes));
  }
  commit_wgmma();
}

template <bool Bf16>
__device__ __forceinline__ void pack_weights(const float (&s)[64], std::uint32_t (&p)[8][4]) {
#pragma unroll
  for (int step = 0; step < 8; ++step) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int at = (step * 2 + i / 2) * 4 + i % 2 * 2;
      p[step][i] = sm80::pack_16<Bf16>(s[at], s[at + 1]);
    }
  }
}

// Where the parts of shared memory begin. Barriers: of each place of K and of V, whether it is full
// and whether it is empty again; of Q, whether it is there.
struct Memory {
  std::uint32_t q = 0;
  std::uint32_t k = 0;
  std::uint32_t v = 0;
  std::uint32_t barriers = 0;
  __device__ std::uint32_t k_full(int tile) const { return barriers + tile % 2 * 8; }
  __device__ std::uint32_t v_full(int tile) const { return barriers + 16 + tile % 2 * 8; }
  __device__ std::uint32_t k_empty(int tile) const { return barriers + 32 + tile % 2 * 8; }
  __device__ std::uint32_t v_empty(int tile) const { return barriers + 48 + tile % 2 * 8; }
  __device__ std::uint32_t q_full() const { return barriers + 64; }
};
// Each place is used by every second tile: the parity of its uses before `tile`.
__device__ __forceinline__ unsigned parity_of(int tile) {
  return static_cast<unsigned>(tile / 2 & 1);
}

struct TileRange {
  int first = 0;
  int count = 0;
};

// The loading warpgroup: Q, then K and V of each tile as places become empty. What a group of
// copies brought is announced when the next one is under way, or before waiting for an empty place:
// those who are to empty it may be waiting for what has arrived.
class TileLoader {
 public:
  __device__ explicit TileLoader(std::uint32_t first) : unannounced_(first) {}

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

  std::uint32_t unannounced_;  // the barrier of the group before; 0: none
};

__device__ __forceinline__ void load_tiles(const PrefillKernelParams& params, const Work& work,
                                           const Memory& memory, TileRange tiles) {
  load_queries(params, work, memory.q);
  sm80::commit_copies();
  TileLoader loader(memory.q_full());
#pragma unroll 1
  for (int tile = 0; tile < tiles.count; ++tile) {
    // The first use of a place does not wait.
    if (tile >= 2) loader.wait_until_empty(memory.k_empty(tile), parity_of(tile - 2));
    load_side(params, work, params.k, tiles.first + tile, memory.k + tile % 2 * kTileBytes);
    loader.started(memory.k_full(tile));
    if (tile >= 2) loader.wait_until_empty(memory.v_empty(tile), parity_of(tile - 2));
    load_side(params, work, params.v, tiles.first + tile, memory.v + tile % 2 * kTileBytes);
    loader.started(memory.v_full(tile));
  }
  loader.finish();
}

template <bool Bf16>
__device__ __forceinline__ void attend_tiles(const PrefillKernelParams& params, const Work& work,
                                             const Memory& memory, TileRange tiles) {
  const std::uint32_t own_q = memory.q + (threadIdx.x - kLoaders) / 128 * 64 * 128;
  const bool announces = threadIdx.x % 32 == 0;  // for its warp
  Softmax state;
  float o[64];
  float s[64];
  std::uint32_t p[8][4];
#pragma unroll
  for (int i = 0; i < 64; ++i) o[i] = 0.0F;
  wait_for(memory.q_full(), 0);
  wait_for(memory.k_full(0), 0);
  start_scores<Bf16>(own_q, memory.k, s);
  wait_wgmma<0>();
  keep_accumulators(s);
  if (announces) arrive(memory.k_empty(0));
  soften(params, work, tiles.first, s, state);
  pack_weights<Bf16>(s, p);
#pragma unroll 1
  for (int tile = 0; tile + 1 < tiles.count; ++tile) {
    wait_for(memory.k_full(tile + 1), parity_of(tile + 1));
    start_scores<Bf16>(own_q, memory.k + (tile + 1) % 2 * kTileBytes, s);
    wait_for(memory.v_full(tile), parity_of(tile));
    start_values<Bf16>(p, memory.v + tile % 2 * kTileBytes, o);
    wait_wgmma<1>();
    keep_accumulators(s);
    if (announces) arrive(memory.k_empty(tile + 1));
    const float2 factor = soften(params, work, tiles.first + tile + 1, s, state);
    wait_wgmma<0>();
    keep_accumulators(o);
    if (announces) arrive(memory.v_empty(tile));
#pragma unroll
    for (int j = 0; j < 16; ++j) {
      o[j * 4] *= factor.x;
      o[j * 4 + 1] *= factor.x;
      o[j * 4 + 2] *= factor.y;
      o[j * 4 + 3] *= factor.y;
    }
    pack_weights<Bf16>(s, p);
  }
  wait_for(memory.v_full(tiles.count - 1), parity_of(tiles.count - 1));
  start_values<Bf16>(p, memory.v + (tiles.count - 1) % 2 * kTileBytes, o);
  wait_wgmma<0>();
  keep_accumulators(o);
  write_rows<Bf16>(params, work, state, o);
}

template <bool Bf16>
__global__ void __launch_bounds__(kThreads, 1)
    prefill_kernel(const __grid_constant__ PrefillKernelParams params) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) std::byte shared[];
  const Work work = find_work(params);
  if (work.first_query >= work.num_queries) return;
  const std::uint32_t base = sm80::shared_address(shared);
  const Memory memory{.q = base,
                      .k = base + kTileBytes,
                      .v = base + 3 * kTileBytes,
                      .barriers = base + 5 * kTileBytes};
  const int first_tile = work.tokens.first / kTile;
  const TileRange tiles{
      first_tile, work.tokens.empty() ? 0 : (work.tokens.last + kTile - 1) / kTile - first_tile};
  if (threadIdx.x == 0) {
    for (int place = 0; place < 2; ++place) {
      start_barrier(memory.k_full(place), kLoaders);
      start_barrier(memory.v_full(place), kLoaders);
      start_barrier(memory.k_empty(place), 8);  // warps that read it
      start_barrier(memory.v_empty(place), 8);
    }
    start_barrier(memory.q_full(), kLoaders);
    publish_barriers();
  }
  __syncthreads();
  if (threadIdx.x < kLoaders) {
    give_registers<40>();
    if (tiles.count > 0) load_tiles(params, work, memory, tiles);
  } else {
    take_registers<232>();
    if (tiles.count > 0) {
      attend_tiles<Bf16>(params, work, memory, tiles);
    } else {
      float o[64];
#pragma unroll
      for (int i = 0; i < 64; ++i) o[i] = 0.0F;
      Softmax state;
      write_rows<Bf16>(params, work, state, o);
    }
  }
#endif
}

template <bool Bf16>
cudaError_t launch(const PrefillKernelParams& params, cudaStream_t stream) {
  const cudaError_t status = cudaFuncSetAttribute(
      prefill_kernel<Bf16>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  if (status != cudaSuccess) return status;
  const auto blocks = static_cast<unsigned>(static_cast<std::int64_t>(params.query_tiles) *
                                            params.num_requests * params.num_heads);
  if (blocks == 0) return cudaSuccess;
  prefill_kernel<Bf16><<<blocks, kThreads, kSharedBytes, stream>>>(params);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_prefill_kernel(const PrefillKernelParams& params, bool bf16,
                                  cudaStream_t stream) {
  return bf16 ? launch<true>(params, stream) : launch<false>(params, stream);
}

}  // namespace kernelpath::kernels::cuda::sm90
