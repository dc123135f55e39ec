#pragma once

#include "base/embedded.h"

#include <span>

namespace kernelpath::engines {

// The engine tables of data/engines/ as the build embedded them; paths are "trtllm-2026-11/…".
std::span<const EmbeddedFile> embedded_tables();

}  // namespace kernelpath::engines
