#pragma once

#include "base/result.h"
#include "checkpoint/gguf.h"
#include "checkpoint/weights.h"
#include "json/document.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::checkpoint {

// A tensor in the files of a checkpoint.
struct StoredTensor {
  std::string name;
  std::string type;                 // as its format spells it: "BF16", "F8_E4M3"; "q8_0" in GGUF
  std::vector<std::int64_t> shape;  // slowest dimension first, also of GGUF tensors
  std::int64_t bytes = 0;
  std::size_t file = 0;     // index into TensorFiles::files
  std::int64_t offset = 0;  // of its first byte in that file
};

// The weight files of a checkpoint, open for reading.
class TensorFiles {
 public:
  // `path` is a folder with safetensors files or a GGUF file. Headers, index and every tensor's
  // range are checked before anything is read. Errors: those of read_weights and read_gguf;
  // kInputMissing (no weights in the folder), kCheckpoint (shards that the index names are not
  // there, all of them by name; a file is shorter than its header says).
  static Result<TensorFiles> open(const std::string& path);

  ~TensorFiles();
  TensorFiles(TensorFiles&& other) noexcept;
  TensorFiles& operator=(TensorFiles&& other) noexcept;
  TensorFiles(const TensorFiles&) = delete;
  TensorFiles& operator=(const TensorFiles&) = delete;

  // Sorted by name.
  [[nodiscard]] std::span<const StoredTensor> tensors() const { return tensors_; }
  // Gives every tensor another name; the order changes with them.
  void rename(const std::function<std::string(const std::string&)>& to);
  // Null if there is no such tensor.
  [[nodiscard]] const StoredTensor* find(std::string_view name) const;
  [[nodiscard]] std::span<const std::string> files() const { return paths_; }
  [[nodiscard]] std::span<const json::Warning> warnings() const { return warnings_; }

  // Reads the bytes [first, first + out.size()) of a tensor, which lie within it. Any number of
  // threads may read. Errors: kCheckpoint (the file ends before them), kRuntime.
  [[nodiscard]] Result<void> read(const StoredTensor& tensor, std::int64_t first,
                                  std::span<std::byte> out) const;

 private:
  TensorFiles() = default;

  Result<void> add_safetensors(const std::string& folder);
  Result<void> add_gguf(const std::string& path);
  Result<void> open_file(const std::string& path);
  [[nodiscard]] Result<void> check_ranges() const;
  void close_all();

  std::vector<std::string> paths_;
  std::vector<int> descriptors_;
  std::vector<std::int64_t> sizes_;
  std::vector<StoredTensor> tensors_;
  std::vector<json::Warning> warnings_;
};

}  // namespace kernelpath::checkpoint
