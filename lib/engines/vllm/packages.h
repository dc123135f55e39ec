#pragma once

#include <array>
#include <string_view>

namespace kernelpath::engines::vllm {

// What is installed and built in, as far as the selection of backends can see it.
struct Packages {
  bool flash_attn_2 = true;
  bool flash_attn_3 = true;
  bool flash_attn_4 = true;
  bool flashmla = true;            // vllm._flashmla_C
  bool flashmla_extension = true;  // vllm._flashmla_extension_C
  bool flashmla_mega = true;       // the mega attention operators in it
  bool flashinfer = true;
  bool flashinfer_kernels = true;   // precompiled, or the server that has them answers
  bool flashinfer_compiler = true;  // nvcc (since 0.33 with ninja) to compile what is not there
  bool flashinfer_sparse_sm120 = true;
  bool flashinfer_sm90_mla = true;
  bool tokenspeed_mla = true;
  bool b12x = true;
  bool aiter = false;   // AMD's kernels, found and supported by the device
  bool cpu_fp8 = true;  // AMX or AVX-512
  bool amx = true;
  bool zentorch = false;          // AMD's SDPA for Zen processors
  bool deep_gemm = true;          // kernels of sparse attention's indexer
  bool arctic_inference = false;  // suffix decoding

  // Whether FlashInfer can be used at all: installed, and its kernels are there or can be compiled.
  // Source: utils/flashinfer.py, has_flashinfer.
  [[nodiscard]] constexpr bool flashinfer_usable() const {
    return flashinfer && (flashinfer_kernels || flashinfer_compiler);
  }

  // Takes away what cannot be there without what is missing.
  constexpr void drop_dependents() {
    flashinfer_sparse_sm120 = flashinfer_sparse_sm120 && flashinfer_usable();
    flashinfer_sm90_mla = flashinfer_sm90_mla && flashinfer_usable();
    flashmla_mega = flashmla_mega && flashmla;
  }
};

// A package as --lacks and --has name it.
struct PackageInfo {
  std::string_view name;
  std::string_view about;
  bool Packages::*member;
  std::string_view module = {};  // of Python, where backends import it when they are loaded
};

inline constexpr std::array kPackages = {
    PackageInfo{"flash-attn-2", "FlashAttention 2, a part of the release", &Packages::flash_attn_2},
    PackageInfo{"flash-attn-3", "FlashAttention 3 for Hopper, a part of the release",
                &Packages::flash_attn_3},
    PackageInfo{"flash-attn-4", "FlashAttention 4 (CuTe DSL), a part of the release",
                &Packages::flash_attn_4},
    PackageInfo{"flashmla", "FlashMLA's dense extension, a part of the release",
                &Packages::flashmla},
    PackageInfo{"flashmla-extension", "FlashMLA's second extension, a part of the release",
                &Packages::flashmla_extension},
    PackageInfo{"flashmla-mega", "FlashMLA's mega attention operators", &Packages::flashmla_mega},
    PackageInfo{"flashinfer", "flashinfer-python", &Packages::flashinfer, "flashinfer"},
    PackageInfo{"flashinfer-cubin",
                "FlashInfer's precompiled kernels, installed or to be had from their server",
                &Packages::flashinfer_kernels},
    PackageInfo{"nvcc", "a compiler for FlashInfer's kernels", &Packages::flashinfer_compiler},
    PackageInfo{"flashinfer-sparse-sm120", "FlashInfer's sparse MLA decode interface",
                &Packages::flashinfer_sparse_sm120},
    PackageInfo{"flashinfer-sm90-mla", "FlashInfer's MLA for Hopper (0.6.18 or later)",
                &Packages::flashinfer_sm90_mla},
    PackageInfo{"tokenspeed-mla", "TokenSpeed's MLA kernels", &Packages::tokenspeed_mla,
                "tokenspeed_mla"},
    PackageInfo{"b12x", "kernels for SM120, vllm[b12x]", &Packages::b12x, "b12x"},
    PackageInfo{"deep-gemm", "DeepGEMM, which the indexer of sparse attention needs on CUDA",
                &Packages::deep_gemm},
    PackageInfo{"aiter", "AMD's AITER; off unless --has names it", &Packages::aiter, "aiter"},
    PackageInfo{"cpu-fp8", "AMX or AVX-512, for an fp8 cache on a CPU", &Packages::cpu_fp8},
    PackageInfo{"amx", "AMX tiles of an x86 CPU", &Packages::amx},
    PackageInfo{"zentorch", "AMD's plugin for Zen CPUs; off unless --has names it",
                &Packages::zentorch},
    PackageInfo{"arctic-inference", "suffix decoding; off unless --has names it",
                &Packages::arctic_inference},
};

// Short names that people use.
struct PackageAlias {
  std::string_view alias;
  std::string_view name;
};

inline constexpr std::array kPackageAliases = {
    PackageAlias{"fa2", "flash-attn-2"},          PackageAlias{"fa3", "flash-attn-3"},
    PackageAlias{"fa4", "flash-attn-4"},          PackageAlias{"deepgemm", "deep-gemm"},
    PackageAlias{"tokenspeed", "tokenspeed-mla"},
};

// By the name of the Python module that a backend imports; null pointer for others.
constexpr const PackageInfo* find_import(std::string_view module) {
  for (const PackageInfo& package : kPackages) {
    if (package.module == module) return &package;
  }
  return nullptr;
}

// Null pointer for a package that the engine does not look for.
constexpr const PackageInfo* find_package(std::string_view name) {
  for (const PackageInfo& package : kPackages) {
    if (package.name == name) return &package;
  }
  return nullptr;
}

}  // namespace kernelpath::engines::vllm
