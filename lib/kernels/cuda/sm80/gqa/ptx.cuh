#pragma once

#include "kernels/cuda/sm80/gqa/kernel.h"

#include <cstdint>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

// The instructions that CUDA C++ has no name for, each as one function.
namespace kernelpath::kernels::cuda::sm80 {

__device__ inline std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// Lets the next launch of the stream put its blocks where this one's have ended.
__device__ inline void allow_next_launch() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
// Returns when the launch before has ended and what it wrote is visible.
__device__ inline void wait_for_launch_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Brings the line of an address into the L2. No read: what other launches write there meanwhile is
// what a later read finds.
__device__ inline void prefetch_l2(const void* address) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
}

// From the L2, whatever an earlier launch has left in the L1.
__device__ inline std::int32_t load_past_l1(const std::int32_t* from) {
  std::int32_t value;
  asm volatile("ld.global.cg.b32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}
__device__ inline void load_past_l1(std::uint32_t (&to)[4], const void* from) {
  asm volatile("ld.global.cg.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "l"(from)
               : "memory");
}

// One of the two is written and read as a whole, so that a float and its mark belong together.
__device__ inline void store_marked(MarkedPair* to, const MarkedPair& pair) {
  asm volatile("st.relaxed.gpu.global.v2.b64 [%0], {%1, %2};" ::"l"(to), "l"(pair.words[0]),
               "l"(pair.words[1])
               : "memory");
}
__device__ inline void load_marked_if(bool wanted, MarkedPair& pair, const MarkedPair* from) {
  asm volatile(
      "{\n"
      ".reg .pred wanted;\n"
      "setp.ne.u32 wanted, %3, 0;\n"
      "@wanted ld.relaxed.gpu.global.v2.b64 {%0, %1}, [%2];\n"
      "}"
      : "+l"(pair.words[0]), "+l"(pair.words[1])
      : "l"(from), "r"(wanted ? 1 : 0)
      : "memory");
}
__device__ inline void pause_briefly() { __nanosleep(100); }

// A read of what no kernel writes, where it stands among the copies.
__device__ inline std::int32_t load_in_order(const std::int32_t* from) {
  std::int32_t value;
  asm volatile("ld.global.nc.b32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}

// KV is read once a step: it should leave the L2 before what is read again.
__device__ inline std::uint64_t evict_first_policy() {
  std::uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

// 16 bytes to shared memory, past the L1.
__device__ inline void copy_async_16(std::uint32_t to, const void* from, std::uint64_t policy) {
  asm volatile("cp.async.cg.shared.global.L2::cache_hint.L2::128B [%0], [%1], 16, %2;" ::"r"(to),
               "l"(from), "l"(policy)
               : "memory");
}
// The same, or 16 zero bytes without a read.
__device__ inline void copy_async_16_or_zero(std::uint32_t to, const void* from, bool read) {
  const int bytes = read ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
               : "memory");
}
template <int Bytes>
__device__ inline void copy_async_small_or_zero(std::uint32_t to, const void* from, bool read) {
  const int bytes = read ? Bytes : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(Bytes),
               "r"(bytes)
               : "memory");
}
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int Groups>
__device__ inline void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Groups) : "memory");
}
// Four 8×8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8.
__device__ inline void load_matrices(std::uint32_t (&r)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}
__device__ inline void load_matrices_transposed(std::uint32_t (&r)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}
__device__ inline std::uint32_t transpose_matrix(std::uint32_t value) {
  std::uint32_t out;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(out) : "r"(value));
  return out;
}

// d += a b for a 16×16, b 16×8, d 16×8 in f32.
template <bool Bf16>
__device__ inline void multiply_add(float (&d)[4], const std::uint32_t (&a)[4],
                                    const std::uint32_t (&b)[2]) {
  if constexpr (Bf16) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
}

__device__ inline float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ inline float log2_fast(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ inline std::uint32_t pack_bf16(float low, float high) {
  std::uint32_t out;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
  return out;
}
__device__ inline std::uint32_t pack_f16(float low, float high) {
  std::uint32_t out;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
  return out;
}
template <bool Bf16>
__device__ inline std::uint32_t pack_16(float low, float high) {
  return Bf16 ? pack_bf16(low, high) : pack_f16(low, high);
}
__device__ inline std::uint32_t multiply_f16x2(std::uint32_t a, std::uint32_t b) {
  std::uint32_t out;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(out) : "r"(a), "r"(b));
  return out;
}

// One half of a pair twice: an operand's modifier, where the pair is only multiplied with.
__device__ inline std::uint32_t both_low(std::uint32_t pair) {
  std::uint32_t out;
  asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %1;\nmov.b32 %0, {low, low};\n}"
      : "=r"(out)
      : "r"(pair));
  return out;
}
__device__ inline std::uint32_t both_high(std::uint32_t pair) {
  std::uint32_t out;
  asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %1;\nmov.b32 %0, {high, high};\n}"
      : "=r"(out)
      : "r"(pair));
  return out;
}

// Four e4m3 as f16 pairs, exactly; NaN stays NaN.
__device__ inline void widen_e4m3(std::uint32_t bytes, std::uint32_t& low, std::uint32_t& high) {
#if __CUDA_ARCH__ >= 890
  asm("{\n"
      ".reg .b16 first, second;\n"
      "mov.b32 {first, second}, %2;\n"
      "cvt.rn.f16x2.e4m3x2 %0, first;\n"
      "cvt.rn.f16x2.e4m3x2 %1, second;\n"
      "}"
      : "=r"(low), "=r"(high)
      : "r"(bytes));
#else
  const auto widen = [](std::uint32_t pair) {
    const __half2_raw out =
        __nv_cvt_fp8x2_to_halfraw2(static_cast<__nv_fp8x2_storage_t>(pair), __NV_E4M3);
    return static_cast<std::uint32_t>(out.y) << 16 | out.x;
  };
  low = widen(bytes & 0xFFFFU);
  high = widen(bytes >> 16);
#endif
}

// Four e5m2 as f16 pairs: an e5m2 is an f16's upper byte.
__device__ inline void widen_e5m2(std::uint32_t bytes, std::uint32_t& low, std::uint32_t& high) {
  low = __byte_perm(bytes, 0, 0x1404);
  high = __byte_perm(bytes, 0, 0x3424);
}

}  // namespace kernelpath::kernels::cuda::sm80
