#pragma once

#include "checkpoint/gguf.h"
#include "checkpoint/gguf_cursor.h"

#include <cstdint>

namespace kernelpath::checkpoint {

// Reads `count` rows of the tensor table. Each row's offset must be the sum of the sizes before it,
// rounded up to the alignment each. Error kCheckpoint, `where` is the tensor.
Result<std::vector<GgufTensor>> read_gguf_tensors(GgufCursor& cursor, std::int64_t count,
                                                  std::uint32_t alignment);

// Fails unless every tensor's data lies within the `data_bytes` that follow the header.
Result<void> check_gguf_data(GgufCursor& cursor, const std::vector<GgufTensor>& tensors,
                             std::int64_t data_bytes);

// `bytes` rounded up to a multiple of `alignment`; nothing if that does not fit.
std::optional<std::int64_t> gguf_padded(std::int64_t bytes, std::uint32_t alignment);

}  // namespace kernelpath::checkpoint
