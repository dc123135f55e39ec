#include "engines/deepinfer/packages.h"

#include "engines/deepinfer/python.h"

#include <fmt/format.h>

#include <algorithm>

namespace kernelpath::engines::deepinfer {
namespace {

std::optional<Fault> missing_half(std::string_view half, Platform platform) {
  const std::string_view own = platform == Platform::kAscend ? "npu" : "cuda";
  if (half != own) return std::nullopt;
  return Fault{.stage = "import",
               .type = "ImportError",
               .text = fmt::format("cannot import name {} from partially initialized module "
                                   "'flash_mla' (most likely due to a circular import)",
                                   python_repr(half))};
}

std::string_view stage_of(NeededAt when) {
  switch (when) {
    case NeededAt::kImport:
      return "import";
    case NeededAt::kModelClass:
      return "dispatch";
    case NeededAt::kVisionTower:
      return "build";
    case NeededAt::kStructuredOutput:
      return "structured_output";
  }
  return "";
}

}  // namespace

std::optional<Fault> missing_package(std::string_view name, Platform platform) {
  constexpr std::string_view kHalf = "flash_mla.";
  if (name.starts_with(kHalf)) return missing_half(name.substr(kHalf.size()), platform);
  const auto* const row =
      std::ranges::find_if(kPackages, [&](const Package& package) { return package.name == name; });
  if (row == kPackages.end()) return std::nullopt;
  const bool ascend = platform == Platform::kAscend;
  if (!ascend && !row->on_cuda) return std::nullopt;
  const std::optional<NeededAt> when = ascend ? row->ascend : row->cuda;
  // The vision tower is built long after the engine was imported.
  if (!when || *when == NeededAt::kVisionTower) return std::nullopt;
  return Fault{.stage = std::string(stage_of(*when)),
               .type = "ModuleNotFoundError",
               .text = "No module named " + python_repr(name)};
}

}  // namespace kernelpath::engines::deepinfer
