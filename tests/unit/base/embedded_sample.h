#pragma once

#include "base/embedded.h"

#include <span>

namespace kernelpath::testing {

// Two files of tests/data, embedded by this folder's CMakeLists.txt.
std::span<const EmbeddedFile> embedded_sample();

}  // namespace kernelpath::testing
