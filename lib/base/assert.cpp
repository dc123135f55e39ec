#include "base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace kernelpath {

void assertion_failed(const char* expression, const char* file, int line) {
  (void)std::fprintf(
      stderr, "kernelpath: error[INTERNAL]: %s:%d: broken invariant: %s\n  hint: %s\n", file, line,
      expression, "this is a bug in kernelpath; please report it with the command");
  (void)std::fflush(stderr);
#ifdef KERNELPATH_ABORT_ON_ASSERT
  std::abort();  // libFuzzer keeps the input only of what ends in a signal
#else
  std::_Exit(70);
#endif
}

}  // namespace kernelpath
