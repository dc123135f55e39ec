#pragma once

#include "base/error.h"

#include <tl/expected.hpp>

namespace kernelpath {

// A value or the Error that took its place. The only file to change when std::expected can be used
// by every compiler in use (docs/adr/0001-error-type.md).
template <class T>
using Result = tl::expected<T, Error>;

using Unexpected = tl::unexpected<Error>;

// Returns the error of a Result as the error of another one.
inline Unexpected fail(Error error) { return Unexpected(std::move(error)); }

}  // namespace kernelpath

// Evaluates an expression of type Result<T>; returns its error from the enclosing function, else
// binds the value to `name`.
#define KERNELPATH_CONCAT_INNER(a, b) a##b
#define KERNELPATH_CONCAT(a, b) KERNELPATH_CONCAT_INNER(a, b)
#define KERNELPATH_TRY_INNER(name, expression, temporary)       \
  auto temporary = (expression);                                \
  if (!temporary) return ::kernelpath::fail(temporary.error()); \
  auto& name = *temporary

#define KERNELPATH_TRY(name, expression) \
  KERNELPATH_TRY_INNER(name, expression, KERNELPATH_CONCAT(result_, __LINE__))

// The same for expressions whose value is not needed.
#define KERNELPATH_CHECK_OK(expression)                                            \
  do {                                                                             \
    auto check_result = (expression);                                              \
    if (!check_result) return ::kernelpath::fail(std::move(check_result).error()); \
  } while (false)
