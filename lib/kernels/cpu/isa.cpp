#include "kernels/cpu/isa.h"

#include <algorithm>

namespace kernelpath::kernels::cpu {

bool has_isa(Isa isa) {
#if defined(__x86_64__)
  switch (isa) {
    case Isa::kReference:
      return true;
    case Isa::kAvx2:
      return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
             __builtin_cpu_supports("f16c") != 0;
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

Isa best_isa() {
  if (has_isa(Isa::kAvx512)) return Isa::kAvx512;
  return has_isa(Isa::kAvx2) ? Isa::kAvx2 : Isa::kReference;
}

std::optional<Isa> find_isa(std::string_view name) {
  const auto* const found = std::ranges::find(kIsas, name, isa_name);
  return found == kIsas.end() ? std::nullopt : std::optional(*found);
}

}  // namespace kernelpath::kernels::cpu
