#include "base/processors.h"

#include <algorithm>
#include <sched.h>
#include <thread>

namespace kernelpath {

int usable_processors() {
  cpu_set_t set{};
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(CPU_COUNT(&set), 1);
  // A machine of more processors than a cpu_set_t holds.
  return static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U));
}

}  // namespace kernelpath
