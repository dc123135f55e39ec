#include "hardware/probe.h"

#include <string_view>

namespace kernelpath::hardware {
namespace {

constexpr std::string_view kNothingFound = "no NVIDIA GPU was found";

}  // namespace

bool is_probed(const Device& device) {
  return device.id == kProbedId || device.source.starts_with(kNothingFound);
}

std::optional<double> memory_bandwidth(double clock_hz, double bus_bits) {
  constexpr double kTransfersPerCycle = 2;
  constexpr double kBitsPerByte = 8;
  if (clock_hz <= 0 || bus_bits <= 0) return std::nullopt;
  return clock_hz * kTransfersPerCycle * bus_bits / kBitsPerByte;
}

Device probe_device(const ProbeLibraries& libraries) {
  ProbeAnswer nvml = ask_nvml(libraries.nvml);
  if (nvml.device) return *nvml.device;
  ProbeAnswer driver = ask_cuda_driver(libraries.cuda);
  if (driver.device) return *driver.device;
  Device cpu = *find_device("cpu");
  cpu.source =
      "no NVIDIA GPU was found (NVML: " + nvml.problem + "; CUDA driver: " + driver.problem + ")";
  return cpu;
}

}  // namespace kernelpath::hardware
