#pragma once

#include "hardware/device.h"

#include <cstdint>
#include <vector>

namespace kernelpath::hardware {

// Server boards against what sits in a desk, a workstation or a robot.
enum class DeviceClass : std::uint8_t { kServer, kDesk };
DeviceClass device_class(const Device& device);

// The known devices that could take the place of `asked`, the nearest first; `asked` itself and
// other platforms are left out (a CPU is replaced by CUDA devices). The order, each step deciding
// only where the ones before leave a tie:
//   1. the same class (server or desk) before the other
//   2. the same compute capability, then newer ones, then older ones
//   3. less memory before more: the smallest that will do is the one to rent
//   4. the older capability, then the order of known_devices()
std::vector<const Device*> replacements(const Device& asked);

}  // namespace kernelpath::hardware
