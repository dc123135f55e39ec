#include "kernels/cpu/isa.h"

#include <algorithm>
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace kernelpath::kernels::cpu {
namespace {

#if defined(__x86_64__)
// __builtin_cpu_supports of clang 14 does not know it.
bool has_f16c() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

// AMX-BF16, AMX-INT8, AMX-TILE, and the vectors' conversion to bfloat16 and choice of bytes.
bool processor_has_amx() {
  constexpr unsigned kTileBf16 = 1U << 22U;
  constexpr unsigned kTiles = 1U << 24U;
  constexpr unsigned kTileInt8 = 1U << 25U;
  constexpr unsigned kVectorBf16 = 1U << 5U;
  constexpr unsigned kVectorBytes = 1U << 1U;  // AVX512-VBMI
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  if ((d & kTileBf16) == 0 || (d & kTiles) == 0 || (d & kTileInt8) == 0) return false;
  if ((c & kVectorBytes) == 0) return false;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & kVectorBf16) != 0;
}

// Linux keeps the 8 KiB of tile registers only for processes that asked for them, and holds the
// answer for all threads that are started later.
bool system_allows_amx() {
#if defined(__linux__)
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;               // XFEATURE_XTILEDATA
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

bool has_amx() {
  static const bool kHas = processor_has_amx() && system_allows_amx();
  return kHas;
}
#endif

}  // namespace

// NOLINTBEGIN(readability-implicit-bool-conversion): the builtin gives an int to g++, clang a bool
bool has_isa(Isa isa) {
#if defined(__x86_64__)
  switch (isa) {
    case Isa::kReference:
      return true;
    case Isa::kAvx2:
      return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
             has_f16c();
    case Isa::kAvx512:
      return has_isa(Isa::kAvx2) && __builtin_cpu_supports("avx512f") != 0 &&
             __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
             __builtin_cpu_supports("avx512vl") != 0;
    case Isa::kAmx:
      return has_isa(Isa::kAvx512) && has_amx();
  }
  return false;
#else
  return isa == Isa::kReference;
#endif
}
// NOLINTEND(readability-implicit-bool-conversion)

Isa best_isa() {
  if (has_isa(Isa::kAmx)) return Isa::kAmx;
  if (has_isa(Isa::kAvx512)) return Isa::kAvx512;
  return has_isa(Isa::kAvx2) ? Isa::kAvx2 : Isa::kReference;
}

std::optional<Isa> find_isa(std::string_view name) {
  const auto* const found = std::ranges::find(kIsas, name, isa_name);
  return found == kIsas.end() ? std::nullopt : std::optional(*found);
}

}  // namespace kernelpath::kernels::cpu
