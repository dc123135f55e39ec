// Several ranks of which the last one leaves the others in the middle of the run, as llm-run does
// it: failing_rank --tp N HOW, started N times, where HOW is memory, bug, crash, exit or none.
#include "cli/run.h"
#include "cli/run_ranks.h"

#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>

namespace {

using namespace kernelpath;

void leave(const std::string& how) {
  if (how == "memory") throw std::bad_alloc();
  if (how == "bug") throw std::logic_error("a made-up bug");
  if (how == "crash") std::abort();
  if (how == "exit") std::_Exit(0);
}

// Steps until the end; the last rank leaves before the third.
Result<int> steps(cli::RunRanks& ranks, const std::string& how) {
  constexpr int kSteps = 5;
  const comm::Communicator& world = *ranks.placement().world;
  for (int step = 0; step < kSteps; ++step) {
    if (step == 2 && world.rank() + 1 == world.size()) leave(how);
    KERNELPATH_TRY(next, ranks.next_step({}));
    if (next != cli::NextStep::kRun) break;
  }
  return 0;
}

int run(const cli::Invocation& invocation) {
  cli::RunRanks ranks(invocation);
  const Result<int> code = ranks.run([&]() -> Result<int> {
    const std::int64_t count = invocation.settings.integer(cli::Option::kTp).value_or(1);
    KERNELPATH_CHECK_OK(ranks.open(count, 1));
    return steps(ranks, invocation.models.front());
  });
  if (code) return *code;
  return cli::report_error(invocation.log, code.error());
}

}  // namespace

int main(int argc, char** argv) {
  cli::silence_other_ranks();
  return cli::run_program(cli::run_program_description(), argc, argv, run);
}
