#pragma once

#include <cstdint>

// Warpgroup MMAs of sm_90a: 64 rows by `Columns` columns by 16, with f32 accumulators. Thread t of
// the group holds rows 16 * (t / 32) + t % 32 / 4 (+ 8) and columns 8 * j + 2 * (t % 4) (+ 1) in
// d[4 * j] to d[4 * j + 3].
namespace kernelpath::kernels::cuda::sm90 {

// An operand in shared memory whose rows of 128 bytes are swizzled over 1024-byte groups of eight.
// `leading` is the distance of 64-element panels of an operand whose adjacent elements are columns
// (V); one whose adjacent elements are summed over (Q, K) needs none.
__device__ inline std::uint64_t describe(std::uint32_t address, std::uint32_t leading = 16) {
  constexpr std::uint64_t kSwizzle128 = std::uint64_t{1} << 62;
  constexpr std::uint64_t kGroupBytes = 1024;
  return kSwizzle128 | kGroupBytes / 16 << 32 | static_cast<std::uint64_t>(leading / 16) << 16 |
         (address & 0x3FFFFU) / 16;
}

__device__ __forceinline__ void begin_wgmma() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void commit_wgmma() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int Groups>
__device__ __forceinline__ void wait_wgmma() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Groups) : "memory");
}
// What the tensor cores write behind the compiler's back must not be held elsewhere.
template <int Count>
__device__ __forceinline__ void keep_accumulators(float (&d)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

template <int Columns>
struct Wgmma;

// An instruction names each accumulator, and C++ has no way to list the elements of an array: these
// macros are the texts and the operands of 32, 40, 48, 64, 96 and 128 of them.
#define KERNELPATH_NAMES_0 "%0, %1, %2, %3, %4, %5, %6, %7"
#define KERNELPATH_NAMES_1 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define KERNELPATH_NAMES_2 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define KERNELPATH_NAMES_3 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define KERNELPATH_NAMES_4 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define KERNELPATH_NAMES_5 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define KERNELPATH_NAMES_6 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define KERNELPATH_NAMES_7 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define KERNELPATH_NAMES_8 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define KERNELPATH_NAMES_9 ", %72, %73, %74, %75, %76, %77, %78, %79"
#define KERNELPATH_NAMES_10 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define KERNELPATH_NAMES_11 ", %88, %89, %90, %91, %92, %93, %94, %95"
#define KERNELPATH_NAMES_12 ", %96, %97, %98, %99, %100, %101, %102, %103"
#define KERNELPATH_NAMES_13 ", %104, %105, %106, %107, %108, %109, %110, %111"
#define KERNELPATH_NAMES_14 ", %112, %113, %114, %115, %116, %117, %118, %119"
#define KERNELPATH_NAMES_15 ", %120, %121, %122, %123, %124, %125, %126, %127"
#define KERNELPATH_NAMES_OF_32 \
  KERNELPATH_NAMES_0 KERNELPATH_NAMES_1 KERNELPATH_NAMES_2 KERNELPATH_NAMES_3
#define KERNELPATH_NAMES_OF_40 KERNELPATH_NAMES_OF_32 KERNELPATH_NAMES_4
#define KERNELPATH_NAMES_OF_48 KERNELPATH_NAMES_OF_40 KERNELPATH_NAMES_5
#define KERNELPATH_NAMES_OF_64 KERNELPATH_NAMES_OF_48 KERNELPATH_NAMES_6 KERNELPATH_NAMES_7
#define KERNELPATH_NAMES_OF_96                                                     \
  KERNELPATH_NAMES_OF_64 KERNELPATH_NAMES_8 KERNELPATH_NAMES_9 KERNELPATH_NAMES_10 \
      KERNELPATH_NAMES_11
#define KERNELPATH_NAMES_OF_128                                                      \
  KERNELPATH_NAMES_OF_96 KERNELPATH_NAMES_12 KERNELPATH_NAMES_13 KERNELPATH_NAMES_14 \
      KERNELPATH_NAMES_15
#define KERNELPATH_8(d, i)                                                            \
  "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3]), "+f"(d[(i) + 4]), \
      "+f"(d[(i) + 5]), "+f"(d[(i) + 6]), "+f"(d[(i) + 7])
#define KERNELPATH_OPERANDS_32(d) \
  KERNELPATH_8(d, 0), KERNELPATH_8(d, 8), KERNELPATH_8(d, 16), KERNELPATH_8(d, 24)
#define KERNELPATH_OPERANDS_40(d) KERNELPATH_OPERANDS_32(d), KERNELPATH_8(d, 32)
#define KERNELPATH_OPERANDS_48(d) KERNELPATH_OPERANDS_40(d), KERNELPATH_8(d, 40)
#define KERNELPATH_OPERANDS_64(d) \
  KERNELPATH_OPERANDS_48(d), KERNELPATH_8(d, 48), KERNELPATH_8(d, 56)
#define KERNELPATH_OPERANDS_96(d)                                                           \
  KERNELPATH_OPERANDS_64(d), KERNELPATH_8(d, 64), KERNELPATH_8(d, 72), KERNELPATH_8(d, 80), \
      KERNELPATH_8(d, 88)
#define KERNELPATH_OPERANDS_128(d)                                                            \
  KERNELPATH_OPERANDS_96(d), KERNELPATH_8(d, 96), KERNELPATH_8(d, 104), KERNELPATH_8(d, 112), \
      KERNELPATH_8(d, 120)

// N0 to N4: the numbers of the operands after the accumulators.
#define KERNELPATH_WGMMA_SHARED(COLUMNS, COUNT, TYPE, N0, N1, N2)           \
  asm volatile(                                                             \
      "{\n"                                                                 \
      ".reg .pred p;\n"                                                     \
      "setp.ne.b32 p, %" #N2                                                \
      ", 0;\n"                                                              \
      "wgmma.mma_async.sync.aligned.m64n" #COLUMNS "k16.f32." TYPE "." TYPE \
      " {" KERNELPATH_NAMES_OF_##COUNT "}, %" #N0 ", %" #N1                 \
                                       ", p, 1, 1, 0, 0;\n"                 \
                                       "}\n"                                \
      : KERNELPATH_OPERANDS_##COUNT(d)                                      \
      : "l"(a), "l"(b), "r"(add ? 1 : 0))
#define KERNELPATH_WGMMA_REGISTERS(COLUMNS, COUNT, TYPE, N0, N1, N2, N3, N4)              \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" #COLUMNS "k16.f32." TYPE "." TYPE      \
               " {" KERNELPATH_NAMES_OF_##COUNT "}, {%" #N0 ", %" #N1 ", %" #N2 ", %" #N3 \
                                                "}, %" #N4 ", 1, 1, 1, 1;\n"              \
               : KERNELPATH_OPERANDS_##COUNT(d)                                           \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))

// shared(): d = a b^T, or d += a b^T, both in shared memory with adjacent elements summed over.
// registers(): d += a b, a in registers and b in shared memory with adjacent columns.
#define KERNELPATH_DEFINE_WGMMA(COLUMNS, COUNT, N0, N1, N2, N3, N4)                   \
  template <>                                                                         \
  struct Wgmma<COLUMNS> {                                                             \
    template <bool Bf16>                                                              \
    static __device__ __forceinline__ void shared(float (&d)[COUNT], std::uint64_t a, \
                                                  std::uint64_t b, bool add) {        \
      if constexpr (Bf16) {                                                           \
        KERNELPATH_WGMMA_SHARED(COLUMNS, COUNT, "bf16", N0, N1, N2);                  \
      } else {                                                                        \
        KERNELPATH_WGMMA_SHARED(COLUMNS, COUNT, "f16", N0, N1, N2);                   \
      }                                                                               \
    }                                                                                 \
    template <bool Bf16>                                                              \
    static __device__ __forceinline__ void registers(float (&d)[COUNT],               \
                                                     const std::uint32_t (&a)[4],     \
                                                     std::uint64_t b) {               \
      if constexpr (Bf16) {                                                           \
        KERNELPATH_WGMMA_REGISTERS(COLUMNS, COUNT, "bf16", N0, N1, N2, N3, N4);       \
      } else {                                                                        \
        KERNELPATH_WGMMA_REGISTERS(COLUMNS, COUNT, "f16", N0, N1, N2, N3, N4);        \
      }                                                                               \
    }                                                                                 \
  };

KERNELPATH_DEFINE_WGMMA(64, 32, 32, 33, 34, 35, 36)
KERNELPATH_DEFINE_WGMMA(80, 40, 40, 41, 42, 43, 44)
KERNELPATH_DEFINE_WGMMA(96, 48, 48, 49, 50, 51, 52)
KERNELPATH_DEFINE_WGMMA(128, 64, 64, 65, 66, 67, 68)
KERNELPATH_DEFINE_WGMMA(192, 96, 96, 97, 98, 99, 100)
KERNELPATH_DEFINE_WGMMA(256, 128, 128, 129, 130, 131, 132)

#undef KERNELPATH_DEFINE_WGMMA
#undef KERNELPATH_WGMMA_REGISTERS
#undef KERNELPATH_WGMMA_SHARED
#undef KERNELPATH_8
#undef KERNELPATH_OPERANDS_32
#undef KERNELPATH_OPERANDS_40
#undef KERNELPATH_OPERANDS_48
#undef KERNELPATH_OPERANDS_64
#undef KERNELPATH_OPERANDS_96
#undef KERNELPATH_OPERANDS_128
#undef KERNELPATH_NAMES_OF_32
#undef KERNELPATH_NAMES_OF_40
#undef KERNELPATH_NAMES_OF_48
#undef KERNELPATH_NAMES_OF_64
#undef KERNELPATH_NAMES_OF_96
#undef KERNELPATH_NAMES_OF_128
#undef KERNELPATH_NAMES_0
#undef KERNELPATH_NAMES_1
#undef KERNELPATH_NAMES_2
#undef KERNELPATH_NAMES_3
#undef KERNELPATH_NAMES_4
#undef KERNELPATH_NAMES_5
#undef KERNELPATH_NAMES_6
#undef KERNELPATH_NAMES_7
#undef KERNELPATH_NAMES_8
#undef KERNELPATH_NAMES_9
#undef KERNELPATH_NAMES_10
#undef KERNELPATH_NAMES_11
#undef KERNELPATH_NAMES_12
#undef KERNELPATH_NAMES_13
#undef KERNELPATH_NAMES_14
#undef KERNELPATH_NAMES_15

}  // namespace kernelpath::kernels::cuda::sm90
