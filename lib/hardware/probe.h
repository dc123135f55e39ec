#pragma once

#include "hardware/device.h"

#include <optional>
#include <string>
#include <string_view>

namespace kernelpath::hardware {

// Of a GPU that was found.
inline constexpr std::string_view kProbedId = "cuda:0";

// The libraries that are asked about this machine's GPU: names as dlopen takes them.
struct ProbeLibraries {
  std::string nvml = "libnvidia-ml.so.1";
  std::string cuda = "libcuda.so.1";
};

// The first NVIDIA GPU of this machine ("cuda:0") as NVML describes it, else as the CUDA driver
// does, else the CPU. `source` says which of them answered and, for the CPU, why the others did
// not. The one function that looks at the machine; asked for by --device auto only.
Device probe_device(const ProbeLibraries& libraries = {});

// Whether the device is what probe_device found, and not one that an option describes.
bool is_probed(const Device& device);

// What one way of asking gives.
struct ProbeAnswer {
  std::optional<Device> device = {};
  std::string problem = {};  // why there is no device
};

// NVIDIA's management library: name, capability, memory and what the driver keeps of it,
// multiprocessors, and the bandwidth as memory clock times bus width.
ProbeAnswer ask_nvml(const std::string& library);

// The CUDA driver: the same, but for the memory that it keeps, which it leaves out of the total.
ProbeAnswer ask_cuda_driver(const std::string& library);

// Bytes per second of a memory with this clock and bus, at two transfers a cycle; nothing where one
// of them is unknown.
std::optional<double> memory_bandwidth(double clock_hz, double bus_bits);

}  // namespace kernelpath::hardware
