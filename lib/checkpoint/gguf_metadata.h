#pragma once

#include "checkpoint/gguf.h"
#include "checkpoint/gguf_cursor.h"

#include <cstdint>

namespace kernelpath::checkpoint {

// Reads `count` pairs of metadata. Errors: kCheckpoint, as GgufCursor gives them or for a key or a
// value that no GGUF file may have.
Result<std::vector<GgufPair>> read_gguf_pairs(GgufCursor& cursor, std::int64_t count);

}  // namespace kernelpath::checkpoint
