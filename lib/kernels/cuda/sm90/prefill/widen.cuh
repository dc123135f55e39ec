#pragma once

#include "attention/data_type.h"
#include "kernels/cuda/sm80/gqa/ptx.cuh"

#include <cstdint>

// Stored values of fewer than 16 bits as f16, in shared memory.
namespace kernelpath::kernels::cuda::sm90 {

// e2m1 codes as f16 are short of this factor, which the f32 scales of scores and output carry: in
// f16 it would overflow together with block scales from 4 on.
inline constexpr float kE2m1Factor = 16384.0F;

__device__ __forceinline__ void load_shared_16(std::uint32_t (&r)[4], std::uint32_t from) {
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(from)
               : "memory");
}
__device__ __forceinline__ void store_shared_16(std::uint32_t to, const std::uint32_t (&r)[4]) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(r[0]), "r"(r[1]),
               "r"(r[2]), "r"(r[3])
               : "memory");
}

// The 16 values at `from` become two chunks of 8, at place(0) and place(1).
template <attention::DataType Type, class Place>
__device__ __forceinline__ void widen_fp8(std::uint32_t from, const Place& place) {
  std::uint32_t bytes[4];
  load_shared_16(bytes, from);
#pragma unroll
  for (int part = 0; part < 2; ++part) {
    std::uint32_t out[4];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if constexpr (Type == attention::DataType::kFp8E5m2) {
        sm80::widen_e5m2(bytes[part * 2 + i], out[i * 2], out[i * 2 + 1]);
      } else {
        sm80::widen_e4m3(bytes[part * 2 + i], out[i * 2], out[i * 2 + 1]);
      }
    }
    store_shared_16(place(part), out);
  }
}

// Eight e2m1 codes times a pair of equal scales, over kE2m1Factor: codes become bytes of e5m2,
// whose bits are an f16's upper ones.
__device__ __forceinline__ void widen_e2m1(std::uint32_t codes, std::uint32_t scale,
                                           std::uint32_t (&out)[4]) {
  constexpr std::uint32_t kSign = 0x80808080U;
  constexpr std::uint32_t kMagnitude = 0x0E0E0E0EU;
  const std::uint32_t even = (codes << 4 & kSign) | (codes << 1 & kMagnitude);
  const std::uint32_t odd = (codes & kSign) | (codes >> 3 & kMagnitude);
  // In the order of the codes: even and odd ones take turns.
  const std::uint32_t first = __byte_perm(even, odd, 0x5140);
  const std::uint32_t second = __byte_perm(even, odd, 0x7362);
  sm80::widen_e5m2(first, out[0], out[1]);
  sm80::widen_e5m2(second, out[2], out[3]);
#pragma unroll
  for (int i = 0; i < 4; ++i) out[i] = sm80::multiply_f16x2(out[i], scale);
}

// The 32 codes at `from`, of two blocks whose scales are the lower (half = 0) or upper two bytes of
// the word at `scales`, become four chunks of 8.
template <class Place>
__device__ __forceinline__ void widen_nvfp4(std::uint32_t from, std::uint32_t scales, int half,
                                            const Place& place) {
  std::uint32_t codes[4];
  std::uint32_t bytes;
  load_shared_16(codes, from);
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(bytes) : "r"(scales) : "memory");
  // Each scale twice, as a pair of f16.
  bytes = __byte_perm(bytes, 0, half == 0 ? 0x1100 : 0x3322);
  std::uint32_t pairs[2];
  sm80::widen_e4m3(bytes, pairs[0], pairs[1]);
#pragma unroll
  for (int part = 0; part < 4; ++part) {
    std::uint32_t out[4];
    widen_e2m1(codes[part], pairs[part / 2], out);
    store_shared_16(place(part), out);
  }
}

}  // namespace kernelpath::kernels::cuda::sm90
