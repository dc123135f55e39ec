#pragma once

#include "hardware/device.h"

#include <string>
#include <vector>

namespace kernelpath::engines::kernelpath {

// Which features of attention go together on a device, asked of the table that a run asks.
struct CapabilityMatrix {
  std::vector<std::string> features;  // as the capability table names them
  // [row][column] for column < row: why no backend runs a layer that needs both; empty: one does.
  std::vector<std::vector<std::string>> refusals;
};
CapabilityMatrix capability_matrix(const hardware::Device& device);

}  // namespace kernelpath::engines::kernelpath
