#include "base/huge_memory.h"

#include "base/units.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <utility>

namespace kernelpath {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

}  // namespace

Result<HugeMemory> HugeMemory::allocate(std::int64_t bytes, std::string_view what) {
  HugeMemory out;
  if (bytes <= 0) return out;
  // One huge page more, so that the first one can be aligned.
  const std::size_t length =
      (static_cast<std::size_t>(bytes) + 2 * kHugePage - 1) / kHugePage * kHugePage;
  void* const mapping = ::mmap(nullptr, length, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    return fail(Error{.code = ErrorCode::kResource,
                      .message = fmt::format("no memory for {} of {}: {}", format_bytes(bytes),
                                             what, std::strerror(errno))});
  }
  out.mapping_ = static_cast<std::byte*>(mapping);
  out.mapped_bytes_ = length;
  const auto address = reinterpret_cast<std::uintptr_t>(mapping);
  out.data_ = out.mapping_ + (kHugePage - address % kHugePage) % kHugePage;
  out.bytes_ = bytes;
  out.huge_pages_ = ::madvise(out.mapping_, length, MADV_HUGEPAGE) == 0;
  return out;
}

HugeMemory::~HugeMemory() {
  if (mapping_ != nullptr) ::munmap(mapping_, mapped_bytes_);
}

HugeMemory::HugeMemory(HugeMemory&& other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)),
      mapped_bytes_(std::exchange(other.mapped_bytes_, 0)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      huge_pages_(std::exchange(other.huge_pages_, false)) {}

HugeMemory& HugeMemory::operator=(HugeMemory&& other) noexcept {
  if (this == &other) return *this;
  if (mapping_ != nullptr) ::munmap(mapping_, mapped_bytes_);
  mapping_ = std::exchange(other.mapping_, nullptr);
  mapped_bytes_ = std::exchange(other.mapped_bytes_, 0);
  data_ = std::exchange(other.data_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  huge_pages_ = std::exchange(other.huge_pages_, false);
  return *this;
}

}  // namespace kernelpath
