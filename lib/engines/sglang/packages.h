#pragma once

#include <array>
#include <string_view>

namespace kernelpath::engines::sglang {

// A package that the engine looks for at run time, as --lacks and --has name it.
struct Package {
  std::string_view name;
  std::string_view about;
};

inline constexpr std::array kPackages = {
    Package{"flashinfer",
            "the flashinfer backend, the kernels of trtllm_mha and trtllm_mla, and "
            "sampling; a part of the release on CUDA"},
    Package{"amx", "AMX tiles of an x86 CPU, for intel_amx"},
};

}  // namespace kernelpath::engines::sglang
