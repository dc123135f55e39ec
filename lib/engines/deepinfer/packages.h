#pragma once

#include "engines/deepinfer/attention.h"
#include "engines/deepinfer/fault.h"

#include <array>
#include <optional>
#include <string_view>

namespace kernelpath::engines::deepinfer {

// When a missing package is noticed. No missing one leads to another implementation.
enum class NeededAt : std::uint8_t { kImport, kModelClass, kVisionTower, kStructuredOutput };

struct Package {
  std::string_view name;    // what Python imports
  std::string_view option;  // for --lacks
  NeededAt cuda = NeededAt::kImport;
  std::optional<NeededAt> ascend = NeededAt::kImport;  // nothing: not needed to start
  bool on_cuda = true;                                 // false: Ascend only
  std::string_view about;
};

inline constexpr std::array kPackages = std::to_array<Package>({
    {"flash_mla", "flashmla", NeededAt::kImport, NeededAt::kImport, true, "all attention kernels"},
    {"deep_gemm", "deep_gemm", NeededAt::kImport, NeededAt::kImport, true,
     "matrix products and index scores"},
    {"deep_ep", "deep_ep", NeededAt::kImport, NeededAt::kImport, true, "expert parallelism"},
    {"deep_select", "deep_select", NeededAt::kModelClass, std::nullopt, true,
     "top-k of the indexer; on Ascend imported at its first use"},
    {"tilelang", "tilelang", NeededAt::kImport, NeededAt::kImport, true, "kernels"},
    {"tile_kernels", "tile_kernels", NeededAt::kImport, NeededAt::kImport, true, "kernels"},
    {"deepinfer._C", "deepinfer_c", NeededAt::kImport, NeededAt::kImport, true,
     "the engine's C++ extension"},
    {"posix_ipc", "posix_ipc", NeededAt::kImport, NeededAt::kImport, true, "processes"},
    {"psutil", "psutil", NeededAt::kImport, NeededAt::kImport, true, "processes"},
    {"tqdm", "tqdm", NeededAt::kImport, NeededAt::kImport, true, "log"},
    {"pytest", "pytest", NeededAt::kImport, NeededAt::kImport, true,
     "imported although only development needs it"},
    {"torch_npu", "torch_npu", NeededAt::kImport, NeededAt::kImport, false, "PyTorch on Ascend"},
    {"flash_attn", "flash_attn", NeededAt::kVisionTower, std::nullopt, true,
     "attention of the vision tower; replaced on Ascend"},
    {"xgrammar", "xgrammar", NeededAt::kStructuredOutput, NeededAt::kStructuredOutput, true,
     "structured output"},
});

// What the engine raises without it while it starts or serves a request of the kind that needs it;
// nothing where it is not missed by then (also for a name that it does not import).
// "flash_mla.cuda" and "flash_mla.npu" are FlashMLA's halves.
std::optional<Fault> missing_package(std::string_view name, Platform platform);

}  // namespace kernelpath::engines::deepinfer
