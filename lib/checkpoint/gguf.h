#pragma once

#include "base/result.h"
#include "checkpoint/ggml_type.h"
#include "checkpoint/gguf_value.h"
#include "checkpoint/safetensors.h"
#include "json/document.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::checkpoint {

inline constexpr std::string_view kGgufMagic = "GGUF";
inline constexpr std::uint32_t kGgufDefaultAlignment = 32;
// What stands before the tensors' data: metadata with the vocabulary, and the tensor table.
inline constexpr std::size_t kMaxGgufHeaderBytes = std::size_t{256} << 20;
inline constexpr std::int64_t kMaxGgufPairs = 65'536;
inline constexpr std::int64_t kMaxGgufTensors = 262'144;

struct GgufPair {
  std::string key;
  GgufValue value;
};

// A row of the tensor table.
struct GgufTensor {
  std::string name;
  const GgmlType* type = nullptr;
  std::array<std::int64_t, 4> shape = {1, 1, 1, 1};  // the fastest dimension first
  std::uint32_t dimensions = 0;                      // of `shape`, as stated
  std::int64_t bytes = 0;                            // without the padding behind it
  std::int64_t offset = 0;                           // of its data, within the part's data
  std::int64_t part = 0;                             // of a split file, from 0
};

// One file of a model.
struct GgufPart {
  std::string path;
  std::int64_t data_begin = 0;  // in bytes, where its tensors' data begins
};

// What a GGUF file says before its data; of a split file, all its parts.
struct Gguf {
  std::uint32_t version = 0;
  std::uint32_t alignment = kGgufDefaultAlignment;  // of the first part
  std::vector<GgufPair> pairs;                      // of the first part, in file order
  std::vector<GgufTensor> tensors;                  // of all parts
  std::int64_t header_bytes = 0;  // of the first part: where its tensors' data begins
  std::int64_t tensor_bytes = 0;  // sum over all tensors, without padding
  std::int64_t parts = 1;
  std::vector<GgufPart> files;  // of read_gguf: one per part
  std::vector<json::Warning> warnings;

  // The value of a key, or null.
  [[nodiscard]] const GgufValue* find(std::string_view key) const;
};

// Does a file that begins like this claim to be GGUF?
bool starts_like_gguf(std::string_view start);

// Reads metadata and tensor table of a GGUF file of version 2 or 3, and of the further parts where
// it is the first of a split file (NAME-00001-of-0000N.gguf). Only little-endian files are read;
// a big-endian one is refused by that name. Every count, length, offset and product is checked
// against the file's length before it is used. The data of tensors is never read.
// Errors: those of read_file; kCheckpoint (`where` is the key, the tensor or the byte), kInputKind
// (a Git LFS pointer or an HTML page), kInputLimit, kInputMissing (a part that is not there).
// Source: llama.cpp 0c1e5709, ggml/src/gguf.cpp and src/llama-model-loader.cpp.
Result<Gguf> read_gguf(const std::string& path, const ReadOptions& options = {});

// The pure part, for one file: `start` is its first bytes, as many as its header has where the file
// is that long; `file_bytes` is the length of the whole file. Parts of a split are not looked for.
Result<Gguf> parse_gguf(std::string_view start, std::size_t file_bytes, const std::string& file,
                        const ReadOptions& options = {});

}  // namespace kernelpath::checkpoint
