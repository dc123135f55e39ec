#include "base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace kernelpath {

void assertion_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "kernelpath: error[INTERNAL]: %s:%d: broken invariant: %s\n  hint: %s\n", file,
               line, expression, "this is a bug in kernelpath; please report it with the command");
  std::fflush(stderr);
  std::_Exit(70);
}

}  // namespace kernelpath
