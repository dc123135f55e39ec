#include "comm/world.h"

namespace kernelpath::comm {

std::string_view mpi_library() { return ""; }

Result<std::unique_ptr<World>> World::open() {
  return fail({.code = ErrorCode::kUnavailable,
               .message = "this build has no MPI, which several ranks need",
               .where = "--tp, --dcp",
               .hint = "install an MPI library with its headers (Debian: libopenmpi-dev) and "
                       "build again"});
}

}  // namespace kernelpath::comm
