#pragma once

#include "base/text.h"

#include <array>
#include <string_view>

namespace kernelpath::engines::trtllm {

// A package that the engine looks for at run time, as --lacks and --has name it.
struct Package {
  std::string_view name;
  std::string_view pip_name;
  std::string_view about;
};

inline constexpr std::array kPackages = {
    Package{"flashinfer", "flashinfer-python",
            "the FLASHINFER backend, and the trtllm-gen and sparse-MLA libraries of TRTLLM"},
    Package{"nvidia-cutlass-dsl", "nvidia-cutlass-dsl", "the cute_dsl_mla library of TRTLLM"},
    Package{"msa", "msa", "the MSA implementation of minimax_m3; off unless --has names it"},
};

// Any case; null pointer for a package that the engine does not look for.
constexpr const Package* find_package(std::string_view name) {
  for (const Package& package : kPackages) {
    if (package.name == name) return &package;
  }
  return nullptr;
}

}  // namespace kernelpath::engines::trtllm
