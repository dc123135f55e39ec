#pragma once

#include "base/result.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace kernelpath::checkpoint {

// Walks the first bytes of a GGUF file. Nothing is read past what the file or the bytes at hand
// hold; numbers are little-endian.
class GgufCursor {
 public:
  // `start` is the beginning of a file of `file_bytes` bytes; both must outlive the cursor.
  GgufCursor(std::string_view start, std::size_t file_bytes, const std::string& file)
      : start_(start), file_bytes_(file_bytes), file_(file) {}

  [[nodiscard]] std::size_t position() const { return position_; }
  // Bytes of the file that were not walked over.
  [[nodiscard]] std::size_t left() const { return file_bytes_ - position_; }
  // A read failed only because `start` is shorter than the file.
  [[nodiscard]] bool wants_more() const { return wants_more_; }

  // The key or tensor that errors name; empty: the byte.
  void set_place(std::string_view place) { place_ = place; }

  // The next bytes. Error kCheckpoint where the file ends before them.
  Result<std::string_view> bytes(std::size_t count);
  Result<void> skip(std::size_t count);
  // u64 length, then so many bytes.
  Result<std::string_view> string(std::size_t longest);

  template <class T>
  Result<T> number() {
    KERNELPATH_TRY(raw, bytes(sizeof(T)));
    T out{};
    static_assert(std::endian::native == std::endian::little);
    std::memcpy(&out, raw.data(), sizeof(T));
    return out;
  }

  [[nodiscard]] Unexpected broken(std::string message, std::string value = {}) const;
  [[nodiscard]] Unexpected over_limit(std::string message) const;

 private:
  [[nodiscard]] std::string where() const;

  std::string_view start_;
  std::size_t file_bytes_;
  const std::string& file_;
  std::size_t position_ = 0;
  std::string place_;
  bool wants_more_ = false;
};

}  // namespace kernelpath::checkpoint
