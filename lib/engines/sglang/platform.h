#pragma once

#include "hardware/device.h"

#include <utility>

namespace kernelpath::engines::sglang {

// What the engine's PlatformContext answers about the machine; CUDA runtime 13.0 is assumed.
// Source: sglang/srt/runtime_context.py, sglang/srt/utils/common.py.
struct Platform {
  hardware::Platform kind = hardware::Platform::kCuda;
  int major = 0;  // of the compute capability; of gfx942: 9, 4
  int minor = 0;
  bool flashinfer_installed = true;
  bool has_amx = true;

  [[nodiscard]] bool cuda() const { return kind == hardware::Platform::kCuda; }
  [[nodiscard]] bool hip() const { return kind == hardware::Platform::kRocm; }
  [[nodiscard]] bool cpu() const { return kind == hardware::Platform::kCpu; }
  [[nodiscard]] bool sm90() const { return cuda() && major == 9; }
  [[nodiscard]] bool sm100() const { return cuda() && major == 10; }
  [[nodiscard]] bool sm110() const { return cuda() && major == 11; }
  [[nodiscard]] bool sm120() const { return cuda() && major == 12; }
  [[nodiscard]] bool blackwell() const { return sm100() || sm110() || sm120(); }
  [[nodiscard]] bool has_flashinfer() const { return cuda() && flashinfer_installed; }
  [[nodiscard]] bool gfx95() const { return hip() && major == 9 && minor >= 5; }
  [[nodiscard]] int device_sm() const { return major * 10 + minor; }
  [[nodiscard]] bool at_least(int wanted_major, int wanted_minor) const {
    return std::pair(major, minor) >= std::pair(wanted_major, wanted_minor);
  }
};

}  // namespace kernelpath::engines::sglang
