#pragma once

#include "hardware/device.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace kernelpath::hardware {

// A row of the table of known devices. 0 stands for "not known" (or, for `capability`, "has none").
struct DeviceRow {
  std::string_view id;
  std::string_view label;
  Platform platform = Platform::kCuda;
  Capability capability;
  std::int64_t memory_mib = 0;  // as the vendor's tool reports it; the basis stands in `source`
  std::int64_t sm_count =
      0;  // streaming multiprocessors; compute units on ROCm, AI cores on Ascend
  double bandwidth_gb_per_s = 0;  // decimal, of the datasheet
  std::string_view source;
  std::string_view gfx_target = {};  // ROCm only: LLVM's name of the processor
};

// A name in everyday use that more than one row could mean.
struct SharedName {
  std::string_view name;
  std::span<const std::string_view> ids;
};

// Ordered by platform, then capability, then id.
std::span<const DeviceRow> device_rows();
std::span<const SharedName> shared_names();

}  // namespace kernelpath::hardware
