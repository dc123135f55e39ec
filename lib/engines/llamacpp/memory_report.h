#pragma once

#include "engines/llamacpp/device_memory.h"
#include "engines/resolution.h"

namespace kernelpath::engines::llamacpp {

// Fills Resolution::memory with what the fullest device holds: weights, caches, states, and whether
// they fit it together; notes say what the other devices hold.
void report_memory(const SpreadQuestion& spread, const DeviceMemory& devices, Resolution& out);

// "0-3, 7" of an ascending list.
std::string ranges_text(const std::vector<std::int64_t>& layers);

}  // namespace kernelpath::engines::llamacpp
