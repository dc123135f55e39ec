// Any bytes as a GGUF file, and behind a good beginning: an error, or tensors whose ranges are
// disjoint and inside the file.
#include "base/assert.h"
#include "checkpoint/gguf.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace {

using kernelpath::ErrorCode;
using kernelpath::checkpoint::Gguf;
using kernelpath::checkpoint::GgufTensor;

void check(const kernelpath::Result<Gguf>& gguf, std::size_t file_bytes) {
  if (!gguf) {
    KERNELPATH_ASSERT(gguf.error().code != ErrorCode::kInternal);
    KERNELPATH_ASSERT(!gguf.error().text().empty());
    return;
  }
  KERNELPATH_ASSERT(gguf->header_bytes >= 0);
  KERNELPATH_ASSERT(static_cast<std::size_t>(gguf->header_bytes) <= file_bytes);
  const auto data_bytes = static_cast<std::int64_t>(file_bytes) - gguf->header_bytes;
  std::int64_t end = 0;
  for (const GgufTensor& tensor : gguf->tensors) {
    KERNELPATH_ASSERT(tensor.type != nullptr && tensor.bytes > 0);
    KERNELPATH_ASSERT(tensor.offset >= end && tensor.offset % gguf->alignment == 0);
    end = tensor.offset + tensor.bytes;
    KERNELPATH_ASSERT(end <= data_bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  constexpr std::size_t kLongFile = std::size_t{1} << 40;
  check(kernelpath::checkpoint::parse_gguf(bytes, bytes.size(), "fuzz"), bytes.size());
  check(kernelpath::checkpoint::parse_gguf(bytes, kLongFile, "fuzz"), kLongFile);

  // Past the counts, which a mutation rarely makes fit: one pair, one tensor.
  std::string file("GGUF\3\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0", 24);
  file += bytes;
  check(kernelpath::checkpoint::parse_gguf(file, kLongFile, "fuzz"), kLongFile);
  return 0;
}
