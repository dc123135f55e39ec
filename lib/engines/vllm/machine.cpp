#include "engines/vllm/machine.h"

#include "base/text.h"

#include <charconv>

namespace kernelpath::engines::vllm {
namespace {

using hardware::Platform;

// "gfx942" → 942 read as hexadecimal: major, minor, stepping from the left, the last two of one
// digit each. 0 for anything else.
unsigned parse_gfx(std::string_view target) {
  constexpr std::string_view kPrefix = "gfx";
  if (!target.starts_with(kPrefix)) return 0;
  target.remove_prefix(kPrefix.size());
  unsigned value = 0;
  const auto [end, error] =
      std::from_chars(target.data(), target.data() + target.size(), value, 16);
  return error == std::errc() && end == target.data() + target.size() ? value : 0;
}

// Source: platforms/rocm.py, _ON_GFX9 …; PyTorch reports gfx942 as capability 9.4.
void describe_amd(std::string_view target, Machine& machine) {
  const unsigned gfx = parse_gfx(target);
  const unsigned major = gfx >> 8U;
  // 0x11 is generation 11: the digits are decimal.
  machine.capability = {.major = static_cast<int>((major >> 4U) * 10 + (major & 0xFU)),
                        .minor = static_cast<int>((gfx >> 4U) & 0xFU)};
  switch (gfx) {
    case 0x908:
      machine.cdna = 1;
      break;
    case 0x90A:
      machine.cdna = 2;
      break;
    case 0x942:
      machine.cdna = 3;
      break;
    case 0x950:
      machine.cdna = 4;
      break;
    default:
      machine.rdna = machine.capability.major >= 10 ? machine.capability.major - 8 : 0;
  }
}

void set_packages(const std::vector<std::string>& names, bool there, Packages& packages) {
  for (const std::string& name : names) {
    const PackageInfo* info = find_package(name);
    for (const PackageAlias& row : kPackageAliases) {
      if (row.alias == name) info = find_package(row.name);
    }
    if (info != nullptr) packages.*(info->member) = there;
  }
}

Packages packages_of(const Environment& environment) {
  Packages packages;
  set_packages(environment.has, true, packages);
  set_packages(environment.lacks, false, packages);
  if (variable_is_on(environment, "VLLM_HAS_FLASHINFER_CUBIN")) packages.flashinfer_kernels = true;
  packages.drop_dependents();
  return packages;
}

}  // namespace

bool variable_is_on(const Environment& environment, std::string_view name) {
  const std::string* value = environment.variable(name);
  return value != nullptr && (*value == "1" || equal_ignoring_case(*value, "true"));
}

std::optional<Machine> machine_of(const hardware::Device& device, const Environment& environment) {
  Machine machine{.platform = device.platform, .packages = packages_of(environment)};
  switch (device.platform) {
    case Platform::kCuda:
      if (!device.capability) return std::nullopt;
      machine.capability = *device.capability;
      break;
    case Platform::kRocm:
      describe_amd(device.gfx_target, machine);
      machine.aiter_enabled = variable_is_on(environment, "VLLM_ROCM_USE_AITER");
      machine.aiter_shuffled_cache =
          variable_is_on(environment, "VLLM_ROCM_SHUFFLE_KV_CACHE_LAYOUT");
      break;
    case Platform::kCpu:
      break;
    case Platform::kAscend:
      return std::nullopt;
  }
  return machine;
}

}  // namespace kernelpath::engines::vllm
