#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kernelpath::kernels::cpu {

// The sets of kernels; each unit is compiled for its own instructions and chosen at run time.
enum class Isa : std::uint8_t {
  kReference,  // plain C++, sums in float64
  kAvx2,       // AVX2, FMA, F16C
  kAvx512,     // AVX-512 F, BW, DQ, VL
  kAmx,        // those, and AMX tiles of bfloat16 for the matrix products of many tokens
};
inline constexpr std::array kIsas{Isa::kReference, Isa::kAvx2, Isa::kAvx512, Isa::kAmx};

constexpr std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::kReference:
      return "reference";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAmx:
      return "amx";
  }
  return "";
}

// Whether this processor, this build and, for kAmx, the operating system have it; the first
// question for kAmx asks the system for the use of tiles in this process.
bool has_isa(Isa isa);
// The set whose vectors it computes with: of kAmx those of kAvx512.
constexpr Isa vector_isa(Isa isa) { return isa == Isa::kAmx ? Isa::kAvx512 : isa; }
// What computes which phase, for a reader.
constexpr std::string_view isa_phases(Isa isa) {
  return isa == Isa::kAmx ? "avx512, batches and prompts amx" : isa_name(isa);
}
// The fastest set that there is.
Isa best_isa();
// By name; nothing for a name that is no set.
std::optional<Isa> find_isa(std::string_view name);

}  // namespace kernelpath::kernels::cpu
