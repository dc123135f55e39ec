#pragma once

#include "bench/cpu_machine.h"
#include "bench/target.h"

#include <memory>

namespace kernelpath::bench {

// The cases on this machine's processor, with the kernels of the engine.
std::unique_ptr<Target> make_cpu_target(const CpuOptions& options);

}  // namespace kernelpath::bench
