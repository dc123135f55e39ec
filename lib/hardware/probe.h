#pragma once

#include "hardware/device.h"

namespace kernelpath::hardware {

// The first CUDA device of this machine as its driver describes it ("cuda:0"), else the CPU. The
// one function that looks at the machine; asked for by --device auto only. The driver is loaded at
// run time, so that no build and no other question needs it.
Device probe_device();

}  // namespace kernelpath::hardware
