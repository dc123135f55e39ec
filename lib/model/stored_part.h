#pragma once

#include "base/result.h"
#include "checkpoint/tensor_files.h"
#include "model/split.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace kernelpath::model {

// The part of a stored tensor that a rank keeps, as if nothing else were stored.
class StoredPart {
 public:
  // All of it.
  explicit StoredPart(const checkpoint::StoredTensor& whole) : whole_(&whole), part_(whole) {}
  // `split.whole` is whole.shape[split.dim], and no block of the tensor's type is cut.
  StoredPart(const checkpoint::StoredTensor& whole, const Split& split);

  // Its shape and bytes are those of the part.
  [[nodiscard]] const checkpoint::StoredTensor& tensor() const { return part_; }

  // Reads the bytes [first, first + out.size()) of the part. Errors: those of TensorFiles::read.
  [[nodiscard]] Result<void> read(const checkpoint::TensorFiles& files, std::int64_t first,
                                  std::span<std::byte> out) const;

 private:
  struct Bytes {
    std::int64_t first = 0;
    std::int64_t count = 0;
  };

  const checkpoint::StoredTensor* whole_;
  checkpoint::StoredTensor part_;
  // Of each index of the dimensions before the split one: so many bytes of the file, and the runs
  // within them. Empty: the whole tensor.
  std::int64_t stride_ = 0;
  std::int64_t kept_ = 0;
  std::vector<Bytes> runs_;
};

}  // namespace kernelpath::model
