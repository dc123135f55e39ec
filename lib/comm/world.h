#pragma once

#include "base/result.h"
#include "comm/communicator.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace kernelpath::comm {

// How this process was started, as far as its environment says: by mpirun, mpiexec or srun.
struct Launch {
  int rank = 0;
  int size = 1;
};
// The names of the environment's variables that say so.
std::span<const std::string_view> launch_variables();
Launch launch_of(std::span<const std::pair<std::string, std::string>> environment);

// The MPI library that this build uses; empty: none.
std::string_view mpi_library();

// All ranks of this program. At most one at a time; MPI starts with it and ends with it.
class World {
 public:
  // Errors: kUnavailable (a build without MPI), kRuntime.
  static Result<std::unique_ptr<World>> open();

  World(const World&) = delete;
  World& operator=(const World&) = delete;
  // All ranks must come here, or none: see end_all().
  virtual ~World() = default;

  [[nodiscard]] virtual Communicator& ranks() = 0;
  // How many of them share this machine, this one included.
  [[nodiscard]] virtual int ranks_on_host() const = 0;
  // A call between ranks has failed: nothing is known of the others, and none may be waited for.
  [[nodiscard]] virtual bool failed() const = 0;
  // Ends every rank at once, with that exit code: for a rank that can no longer take part in
  // collective calls that the others wait in.
  [[noreturn]] virtual void end_all(int exit_code) = 0;

 protected:
  World() = default;
};

}  // namespace kernelpath::comm
