#pragma once

#include "kernels/cuda/sm90/prefill/barriers.cuh"
#include "kernels/cuda/sm90/prefill/load.cuh"
#include "kernels/cuda/sm90/prefill/queries.cuh"
#include "kernels/cuda/sm90/prefill/softmax.cuh"
#include "kernels/cuda/sm90/prefill/wgmma.cuh"
#include "kernels/cuda/sm90/prefill/work.cuh"

// Prefill attention over a paged cache: the kernel that instantiation.cu.in instantiates.
//
// Tile: 128 or 192 queries of one head by up to 128 keys. Warps: a warpgroup that loads (and widens
// what has fewer than 16 bits), two or three of 64 queries each. Shared memory: Q, two tiles each
// of K and V. While the tensor cores multiply weights and values of a tile, the softmax of the next
// one runs. Limit: the matrix rate; 128 queries by 128 keys of head size 128 are 2,048 clocks of
// it, and 1,024 of exponentials.
namespace kernelpath::kernels::cuda::sm90 {

// S = Q K^T of this warpgroup's 64 queries and a tile of keys.
template <class Config>
__device__ __forceinline__ void start_scores(std::uint32_t q, std::uint32_t k,
                                             float (&s)[Config::kKeys / 2]) {
  // The descriptors of a long row, kept over all tiles, would take the registers of others.
  if (Config::kDimK > 128 || Config::kWidens) asm volatile("" : "+r"(q));
  keep_accumulators(s);
  begin_wgmma();
#pragma unroll
  for (int step = 0; step < Config::kDimK / 16; ++step) {
    const int inside = step % 4 * 32;
    Wgmma<Config::kKeys>::template shared<Config::kBf16>(
        s, describe(q + step / 4 * Config::kQueryPanelBytes + inside),
        describe(k + step / 4 * Config::kPanelBytes + inside), step > 0);
  }
  commit_wgmma();
}

// O += P V.
template <class Config>
__device__ __forceinline__ void start_values(const std::uint32_t (&p)[Config::kKeys / 16][4],
                                             std::uint32_t v, float (&o)[Config::kDimV / 2]) {
  keep_accumulators(o);
  begin_wgmma();
#pragma unroll
  for (int step = 0; step < Config::kKeys / 16; ++step) {
    Wgmma<Config::kDimV>::template registers<Config::kBf16>(
        o, p[step], describe(v + step * 2048, Config::kPanelBytes));
  }
  commit_wgmma();
}

template <class Config>
__device__ __forceinline__ void pack_weights(const float (&s)[Config::kKeys / 2],
                                             std::uint32_t (&p)[Config::kKeys / 16][4]) {
#pragma unroll
  for (int step = 0; step < Config::kKeys / 16; ++step) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int at = (step * 2 + i / 2) * 4 + i % 2 * 2;
      p[step][i] = sm80::pack_16<Config::kBf16>(s[at], s[at + 1]);
    }
  }
}

template <int Count>
__device__ __forceinline__ void scale_rows(float (&o)[Count], float2 factor) {
#pragma unroll
  for (int i = 0; i < Count; ++i) o[i] *= i / 2 % 2 == 0 ? factor.x : factor.y;
}

// Warpgroups take turns at starting products: while those of one run, the softmax of others does.
// The first one begins, so that the last one announces a turn more than there is.
template <int Warpgroups>
class Turns {
 public:
  __device__ explicit Turns(int warpgroup) : warpgroup_(warpgroup) {
    if (warpgroup_ == Warpgroups - 1) pass_on();
  }
  __device__ void wait() const { sync_threads(kFirstBarrier + warpgroup_, 256); }
  __device__ void pass_on() const {
    const int next = warpgroup_ == Warpgroups - 1 ? 0 : warpgroup_ + 1;
    announce_threads(kFirstBarrier + next, 256);
  }
  __device__ void end() const {
    if (warpgroup_ == 0) wait();
  }

 private:
  static constexpr int kFirstBarrier = 1 + Warpgroups;  // those before are of queries
  int warpgroup_;
};

template <class Config>
__device__ __forceinline__ void attend_tiles(const PrefillKernelParams& params, const Work& work,
                                             std::uint32_t shared, TileRange tiles) {
  using Memory = PrefillMemory<Config>;
  const Barriers barriers{shared + Memory::kBarriers};
  const int warpgroup = static_cast<int>(threadIdx.x) / 128 - 1;
  const std::uint32_t own_q = shared + Memory::kQ + warpgroup * 64 * 128;
  const std::uint32_t k = shared + Memory::kK;
  const std::uint32_t v = shared + Memory::kV;
  const bool announces = threadIdx.x % 32 == 0;  // for its warp
  const Turns<Config::kMultipliers> turns(warpgroup);
  Softmax state;
  state.start<Config>(params, work, load_queries<Config>(params, work, shared + Memory::kQ));
  float o[Config::kDimV / 2];
  float s[Config::kKeys / 2];
  std::uint32_t p[Config::kKeys / 16][4];
#pragma unroll
  for (int i = 0; i < Config::kDimV / 2; ++i) o[i] = 0.0F;
  wait_for(barriers.k_full(0), 0);
  turns.wait();
  start_scores<Config>(own_q, k, s);
  turns.pass_on();
  wait_wgmma<0>();
  keep_accumulators(s);
  if (announces) arrive(barriers.k_empty(0));
  soften<Config>(params, work, tiles.first, s, state);
  pack_weights<Config>(s, p);
#pragma unroll 1
  for (int tile = 0; tile + 1 < tiles.count; ++tile) {
    wait_for(barriers.k_full(tile + 1), parity_of(tile + 1));
    turns.wait();
    start_scores<Config>(own_q, k + (tile + 1) % 2 * Config::kKBytes, s);
    wait_for(barriers.v_full(tile), parity_of(tile));
    start_values<Config>(p, v + tile % 2 * Config::kVBytes, o);
    turns.pass_on();
    wait_wgmma<1>();
    keep_accumulators(s);
    if (announces) arrive(barriers.k_empty(tile + 1));
    const float2 factor = soften<Config>(params, work, tiles.first + tile + 1, s, state);
    wait_wgmma<0>();
    keep_accumulators(o);
    if (announces) arrive(barriers.v_empty(tile));
    if (__any_sync(~0U, factor.x != 1.0F || factor.y != 1.0F)) scale_rows(o, factor);
    pack_weights<Config>(s, p);
  }
  const int last = tiles.count - 1;
  wait_for(barriers.v_full(last), parity_of(last));
  start_values<Config>(p, v + last % 2 * Config::kVBytes, o);
  wait_wgmma<0>();
  keep_accumulators(o);
  write_rows<Config>(params, work, state, o);
  turns.end();
}

// Of rows that see nothing.
template <class Config>
__device__ __forceinline__ void write_zeros(const PrefillKernelParams& params, const Work& work) {
  float o[Config::kDimV / 2];
#pragma unroll
  for (int i = 0; i < Config::kDimV / 2; ++i) o[i] = 0.0F;
  write_rows<Config>(params, work, Softmax{}, o);
}

template <class Config>
__device__ __forceinline__ void start_barriers(const Barriers& barriers) {
  if (threadIdx.x == 0) {
    for (int place = 0; place < 2; ++place) {
      start_barrier(barriers.k_full(place), Config::kLoaders);
      start_barrier(barriers.v_full(place), Config::kLoaders);
      start_barrier(barriers.k_empty(place), 4 * Config::kMultipliers);  // warps that read it
      start_barrier(barriers.v_empty(place), 4 * Config::kMultipliers);
    }
    publish_barriers();
  }
  __syncthreads();
}

template <class Config>
__global__ void __launch_bounds__(Config::kThreads, 1)
    prefill_kernel(const __grid_constant__ PrefillKernelParams params) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) std::byte memory[];
  const Work work = find_work<Config>(params);
  if (work.first_query >= work.num_queries) return;
  const std::uint32_t shared = sm80::shared_address(memory);
  const int first_tile = work.tokens.first / Config::kKeys;
  const TileRange tiles{first_tile,
                        work.tokens.empty()
                            ? 0
                            : (work.tokens.last + Config::kKeys - 1) / Config::kKeys - first_tile};
  start_barriers<Config>({shared + PrefillMemory<Config>::kBarriers});
  if (threadIdx.x < Config::kLoaders) {
    give_registers<Config::kLoaderRegisters>();
    if (tiles.count == 0) return;
    if constexpr (Config::kWidens) {
      load_and_widen_tiles<Config>(params, work, shared, tiles);
    } else {
      load_tiles<Config>(params, work, shared, tiles);
    }
  } else {
    take_registers<Config::kOtherRegisters>();
    if (tiles.count > 0) {
      attend_tiles<Config>(params, work, shared, tiles);
    } else {
      write_zeros<Config>(params, work);
    }
  }
#endif
}

template <attention::DataType Type, int DimK, int DimV>
cudaError_t launch_prefill_kernel(const PrefillKernelParams& params, cudaStream_t stream) {
  using Config = PrefillConfig<Type, DimK, DimV>;
  constexpr int kBytes = PrefillMemory<Config>::kBytes;
  const cudaError_t status = cudaFuncSetAttribute(
      prefill_kernel<Config>, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (status != cudaSuccess) return status;
  const auto blocks = static_cast<unsigned>(static_cast<std::int64_t>(params.query_tiles) *
                                            params.num_requests * params.num_heads);
  if (blocks == 0) return cudaSuccess;
  prefill_kernel<Config><<<blocks, Config::kThreads, kBytes, stream>>>(params);
  return cudaGetLastError();
}

}  // namespace kernelpath::kernels::cuda::sm90
