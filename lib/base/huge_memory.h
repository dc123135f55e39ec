#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kernelpath {

// Zeroed memory for weights and caches, in huge pages where the system gives them: reading through
// 4 KiB pages costs up to half of the bandwidth, on virtual machines more. Pages are not touched
// here, so that they come to lie with the thread that first writes them.
class HugeMemory {
 public:
  HugeMemory() = default;
  // `what` is named by the error: "weights". Error: kResource (not so much memory). 0 bytes are
  // allowed.
  static Result<HugeMemory> allocate(std::int64_t bytes, std::string_view what);

  ~HugeMemory();
  HugeMemory(HugeMemory&& other) noexcept;
  HugeMemory& operator=(HugeMemory&& other) noexcept;
  HugeMemory(const HugeMemory&) = delete;
  HugeMemory& operator=(const HugeMemory&) = delete;

  // Aligned to a huge page.
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }
  // The system agreed to use huge pages for it.
  [[nodiscard]] bool huge_pages() const { return huge_pages_; }

 private:
  std::byte* mapping_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
  bool huge_pages_ = false;
};

}  // namespace kernelpath
