#pragma once

#include "base/result.h"
#include "checkpoint/dtype.h"
#include "json/document.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kernelpath::checkpoint {

inline constexpr std::size_t kMaxHeaderBytes = std::size_t{100} << 20;

// One tensor as a safetensors header describes it.
struct Tensor {
  std::string name;
  Dtype dtype;
  std::vector<std::int64_t> shape;  // empty for a scalar
  std::int64_t bytes = 0;
  std::int64_t begin = 0;  // of its data, in bytes after the header
  std::size_t shard = 0;   // index into Weights::shards; 0 where a single file was read
};

// What the front of one safetensors file says. The tensors' data is never read.
struct Header {
  std::vector<Tensor> tensors;    // in the order of the header
  std::int64_t header_bytes = 0;  // with the 8 bytes of the length
  std::int64_t data_bytes = 0;    // of the file behind the header
  std::vector<json::Warning> warnings;
};

struct ReadOptions {
  bool strict = false;  // refuse what the reference reader refuses, but engines could still load
};

// Reads the header of a safetensors file: a little-endian 64-bit length, then that many bytes of
// JSON. Every range is checked against the file's length and against shape times type, in 64-bit
// arithmetic that cannot wrap.
// Errors: those of read_file; kCheckpoint (`where` is the tensor), kInputKind (a Git LFS pointer or
// an HTML page), kInputLimit. Source: safetensors 0.8.0, safetensors/src/tensor.rs.
Result<Header> read_safetensors(const std::string& path, const ReadOptions& options = {});

// The pure part: `start` is the file's first bytes, at least 8 + the header's length where the file
// is that long; `file_bytes` is the length of the whole file.
Result<Header> parse_safetensors(std::string_view start, std::size_t file_bytes,
                                 const std::string& file, const ReadOptions& options = {});

}  // namespace kernelpath::checkpoint
