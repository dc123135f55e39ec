#pragma once

#include "comm/communicator.h"

#include <functional>

namespace kernelpath::testing {

// Ranks as threads of this process, which talk through its memory: for tests that need several
// ranks and no MPI. Runs `body` once on each of `size` ranks and returns when all have returned.
void run_ranks(int size, const std::function<void(comm::Communicator&)>& body);

}  // namespace kernelpath::testing
