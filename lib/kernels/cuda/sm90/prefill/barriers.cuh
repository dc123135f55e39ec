#pragma once

#include <cstdint>

// How the warpgroups of a block wait for each other, and what they trade registers with.
namespace kernelpath::kernels::cuda::sm90 {

// Barriers in shared memory that count arrivals: phases follow each other, told apart by parity.
__device__ __forceinline__ void start_barrier(std::uint32_t barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// Returns when the phase of this parity has ended.
__device__ __forceinline__ void wait_for(std::uint32_t barrier, unsigned parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again%=:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra.uni ready%=;\n"
      "bra.uni again%=;\n"
      "ready%=:\n"
      "}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}
// Whether the phase of this parity has ended.
__device__ __forceinline__ bool is_over(std::uint32_t barrier, unsigned parity) {
  std::uint32_t over;
  asm volatile(
      "{\n"
      ".reg .pred over;\n"
      "mbarrier.test_wait.parity.shared::cta.b64 over, [%1], %2;\n"
      "selp.u32 %0, 1, 0, over;\n"
      "}"
      : "=r"(over)
      : "r"(barrier), "r"(parity)
      : "memory");
  return over != 0;
}

// Barriers of the hardware, by number (0 is __syncthreads()): waits until so many threads have come
// to `sync_threads` or `announce_threads`.
__device__ __forceinline__ void sync_threads(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
__device__ __forceinline__ void announce_threads(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// Ordinary writes to shared memory (cp.async's too) become visible to the tensor cores.
__device__ __forceinline__ void publish_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// The registers of a warpgroup's threads, less or more than they were launched with.
template <int Registers>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

}  // namespace kernelpath::kernels::cuda::sm90
