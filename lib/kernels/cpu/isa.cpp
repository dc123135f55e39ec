#include "kernels/cpu/isa.h"

#include <algorithm>
#if defined(__x86_64__)
#include <cpuid.h>
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
  }
  return false;
#else
  return isa == Isa::kReference;
#endif
}
// NOLINTEND(readability-implicit-bool-conversion)

Isa best_isa() {
  if (has_isa(Isa::kAvx512)) return Isa::kAvx512;
  return has_isa(Isa::kAvx2) ? Isa::kAvx2 : Isa::kReference;
}

std::optional<Isa> find_isa(std::string_view name) {
  const auto* const found = std::ranges::find(kIsas, name, isa_name);
  return found == kIsas.end() ? std::nullopt : std::optional(*found);
}

}  // namespace kernelpath::kernels::cpu
