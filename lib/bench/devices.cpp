#include "bench/devices.h"

#include "base/processors.h"
#include "bench/cpu_target.h"
#include "bench/cuda_target.h"
#include "kernels/cpu/isa.h"

#include <fmt/format.h>

#include <limits>

namespace kernelpath::bench {

std::vector<MachineDevice> machine_devices() {
  const kernels::cpu::Isa isa = kernels::cpu::best_isa();
  const auto cpu = make_cpu_target({.threads = static_cast<int>(usable_processors()), .isa = isa});
  std::vector<MachineDevice> out = {{.name = cpu->facts().id,
                                     .label = cpu->facts().label,
                                     .kernels = std::string(kernels::cpu::isa_name(isa)),
                                     .memory_bytes = cpu->facts().memory_bytes}};
  for (int i = 0; i < std::numeric_limits<int>::max(); ++i) {
    const Result<std::unique_ptr<Target>> cuda = make_cuda_target(i);
    if (!cuda) {
      // Behind the last one.
      if (i > 0) break;
      out.push_back({.name = "cuda", .label = "-", .kernels = cuda.error().message, .here = false});
      break;
    }
    const DeviceFacts& facts = (*cuda)->facts();
    out.push_back({.name = facts.id,
                   .label = facts.label,
                   .kernels = fmt::format("sm{}", facts.sm),
                   .memory_bytes = facts.memory_bytes});
  }
  return out;
}

}  // namespace kernelpath::bench
