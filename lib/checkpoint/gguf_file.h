#pragma once

#include "checkpoint/gguf.h"

#include <string>

namespace kernelpath::checkpoint::detail {

// read_gguf for one file, whether it is a part of a split or not.
Result<Gguf> read_gguf_file(const std::string& path, const ReadOptions& options);

}  // namespace kernelpath::checkpoint::detail
