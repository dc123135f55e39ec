#pragma once

namespace kernelpath {

// Processors that the calling thread may run on, at least 1: launchers, containers and `taskset`
// leave a process fewer than the machine has.
int usable_processors();

}  // namespace kernelpath
