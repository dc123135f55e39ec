#pragma once

namespace kernelpath {

// Prints the broken expression and ends the process with code 70 (a bug of kernelpath).
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line);

}  // namespace kernelpath

// For broken invariants only; bad input is an Error.
#define KERNELPATH_ASSERT(expression) \
  ((expression) ? void(0) : ::kernelpath::assertion_failed(#expression, __FILE__, __LINE__))
