// Any bytes as a safetensors file, as its header, and as an index: an error, or tensors whose
// ranges are disjoint and inside the file.
#include "base/assert.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/weights.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using kernelpath::ErrorCode;
using kernelpath::checkpoint::Header;
using kernelpath::checkpoint::Tensor;

constexpr std::size_t kDataBytes = 64;

void check_header(const kernelpath::Result<Header>& header) {
  if (!header) {
    KERNELPATH_ASSERT(header.error().code != ErrorCode::kInternal);
    KERNELPATH_ASSERT(!header.error().text().empty());
    return;
  }
  std::vector<Tensor> tensors = header->tensors;
  tensors.erase(std::remove_if(tensors.begin(), tensors.end(),
                               [](const Tensor& tensor) { return tensor.bytes == 0; }),
                tensors.end());
  std::sort(tensors.begin(), tensors.end(),
            [](const Tensor& a, const Tensor& b) { return a.begin < b.begin; });
  std::int64_t end = 0;
  for (const Tensor& tensor : tensors) {
    KERNELPATH_ASSERT(tensor.begin >= end && tensor.bytes > 0);
    end = tensor.begin + tensor.bytes;
    KERNELPATH_ASSERT(end <= header->data_bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  check_header(kernelpath::checkpoint::parse_safetensors(bytes, bytes.size(), "fuzz"));
  check_header(kernelpath::checkpoint::parse_safetensors(bytes, SIZE_MAX / 4, "fuzz"));

  std::string file;
  for (unsigned shift = 0; shift < 64; shift += 8) {
    file += static_cast<char>((std::uint64_t{size} >> shift) & 0xffU);
  }
  file += bytes;
  file.append(kDataBytes, '\0');
  check_header(kernelpath::checkpoint::parse_safetensors(file, file.size(), "fuzz"));

  const auto index = kernelpath::checkpoint::parse_index(bytes, "fuzz");
  if (!index) return 0;
  for (const auto& [name, shard] : index->weight_map) {
    KERNELPATH_ASSERT(shard < index->shards.size());
  }
  for (const std::string& shard : index->shards) {
    KERNELPATH_ASSERT(shard.front() != '/' && shard.find("../") != 0);
  }
  return 0;
}
