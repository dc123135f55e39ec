#include "ranks_launch.h"

#include "comm/world.h"

namespace kernelpath::testing {
namespace {

// Test machines have fewer processors than ranks, and tests may run as root.
std::vector<std::string> launcher_options() {
  if (!comm::mpi_library().starts_with("Open MPI")) return {};
  return {"--allow-run-as-root",
          "--oversubscribe",
          "--bind-to",
          "none",
          "--mca",
          "mpi_yield_when_idle",
          "1"};
}

std::string own_program() { return std::string(KERNELPATH_BIN_DIR) + "/llm-run"; }

void add_program(Call& call, int count, const std::string& program,
                 const std::vector<std::string>& arguments) {
  call.arguments.insert(call.arguments.end(), {"-np", std::to_string(count), program});
  call.arguments.insert(call.arguments.end(), arguments.begin(), arguments.end());
}

}  // namespace

bool has_ranks() { return !comm::mpi_library().empty() && *KERNELPATH_MPIEXEC != '\0'; }

Call ranks_call(int count, const std::string& program, const std::vector<std::string>& arguments) {
  Call call{.arguments = launcher_options(), .timeout_s = 120};
  add_program(call, count, program, arguments);
  return call;
}

Call ranks_call(int count, const std::vector<std::string>& arguments) {
  return ranks_call(count, own_program(), arguments);
}

void add_ranks(Call& call, int count, const std::vector<std::string>& arguments) {
  call.arguments.emplace_back(":");
  add_program(call, count, own_program(), arguments);
}

Outcome launch(const Call& call) { return run_program(KERNELPATH_MPIEXEC, call); }

std::int64_t count_of(const std::string& text, const std::string& part) {
  std::int64_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

}  // namespace kernelpath::testing
