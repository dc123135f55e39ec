#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kernelpath::bench {

// A device of this machine, as --device names it.
struct MachineDevice {
  std::string name;     // "cpu", "cuda:0"
  std::string label;    // "NVIDIA H200"
  std::string kernels;  // "amx", "sm90"; of what is not there, why
  std::int64_t memory_bytes = 0;
  bool here = true;
};

// The CPU, and every CUDA device that this build can measure on; where there is none, a row "cuda"
// with the reason.
std::vector<MachineDevice> machine_devices();

}  // namespace kernelpath::bench
