#include "checkpoint/gguf_tensors.h"

#include "base/checked.h"
#include "base/text.h"

#include <fmt/format.h>

#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace kernelpath::checkpoint {
namespace {

constexpr std::size_t kMaxNameBytes = 63;  // GGML_MAX_NAME is 64 with its NUL
constexpr std::uint32_t kMaxDimensions = 4;

// "0 f32, 1 f16, 2 q4_0 …"
std::string known_types() {
  std::vector<std::string> types;
  for (const GgmlType& type : ggml_types())
    types.push_back(fmt::format("{} {}", type.id, type.name));
  return fmt::format("{}", fmt::join(types, ", "));
}

class TensorReader {
 public:
  TensorReader(GgufCursor& cursor, std::uint32_t alignment)
      : cursor_(cursor), alignment_(alignment) {}

  Result<GgufTensor> read() {
    cursor_.set_place({});
    GgufTensor tensor;
    KERNELPATH_TRY(name, cursor_.string(kMaxNameBytes));
    if (!seen_.insert(std::string(name)).second) {
      return cursor_.broken("two tensors have this name", shorten(name, 64));
    }
    tensor.name = name;
    cursor_.set_place(name);
    KERNELPATH_CHECK_OK(read_shape(tensor));
    KERNELPATH_CHECK_OK(read_type(tensor));
    KERNELPATH_CHECK_OK(compute_bytes(tensor));
    KERNELPATH_CHECK_OK(read_offset(tensor));
    return tensor;
  }

 private:
  Result<void> read_shape(GgufTensor& tensor) {
    KERNELPATH_TRY(dimensions, cursor_.number<std::uint32_t>());
    if (dimensions > kMaxDimensions) {
      return cursor_.broken(fmt::format("a tensor has at most {} dimensions", kMaxDimensions),
                            std::to_string(dimensions));
    }
    tensor.dimensions = dimensions;
    for (std::uint32_t i = 0; i < dimensions; ++i) {
      KERNELPATH_TRY(size, cursor_.number<std::int64_t>());
      if (size <= 0) {
        return cursor_.broken(fmt::format("dimension {} must be 1 or more", i),
                              std::to_string(size));
      }
      tensor.shape.at(i) = size;
    }
    return {};
  }

  Result<void> read_type(GgufTensor& tensor) {
    KERNELPATH_TRY(id, cursor_.number<std::int32_t>());
    tensor.type = find_ggml_type(id);
    if (tensor.type != nullptr) return {};
    Unexpected unknown = cursor_.broken("the tensor type is unknown or was removed from the format",
                                        std::to_string(id));
    unknown.value().hint = "types: " + known_types();
    return unknown;
  }

  // Rows first, each factor checked: a product that wraps may look small.
  Result<void> compute_bytes(GgufTensor& tensor) {
    const auto& shape = tensor.shape;
    if (shape[0] % tensor.type->block != 0) {
      return cursor_.broken(
          fmt::format("the first dimension must be a multiple of {}, the block of type {}",
                      tensor.type->block, tensor.type->name),
          std::to_string(shape[0]));
    }
    auto elements = std::optional(shape[0]);
    auto bytes = ggml_row_bytes(*tensor.type, shape[0]);
    for (std::size_t i = 1; i < shape.size(); ++i) {
      if (elements) elements = checked_mul(*elements, shape.at(i));
      if (bytes) bytes = checked_mul(*bytes, shape.at(i));
    }
    if (!elements || !bytes) {
      return cursor_.broken(
          "the product of the shape does not fit 64 bits",
          fmt::format("{} x {} x {} x {}", shape[0], shape[1], shape[2], shape[3]));
    }
    tensor.bytes = *bytes;
    return {};
  }

  Result<void> read_offset(GgufTensor& tensor) {
    KERNELPATH_TRY(offset, cursor_.number<std::uint64_t>());
    if (offset != static_cast<std::uint64_t>(expected_)) {
      return cursor_.broken(
          fmt::format("its data must begin at byte {}, behind the tensors before it", expected_),
          std::to_string(offset));
    }
    tensor.offset = expected_;
    const auto padded = gguf_padded(tensor.bytes, alignment_);
    const auto end = padded ? checked_add(expected_, *padded) : std::nullopt;
    if (!end) return cursor_.broken("the sum of the tensors' sizes does not fit 64 bits");
    expected_ = *end;
    return {};
  }

  GgufCursor& cursor_;
  std::uint32_t alignment_;
  std::int64_t expected_ = 0;
  std::unordered_set<std::string> seen_;
};

}  // namespace

std::optional<std::int64_t> gguf_padded(std::int64_t bytes, std::uint32_t alignment) {
  const auto sum = checked_add(bytes, static_cast<std::int64_t>(alignment) - 1);
  if (!sum) return std::nullopt;
  return *sum / alignment * alignment;
}

Result<std::vector<GgufTensor>> read_gguf_tensors(GgufCursor& cursor, std::int64_t count,
                                                  std::uint32_t alignment) {
  std::vector<GgufTensor> tensors;
  tensors.reserve(static_cast<std::size_t>(count));
  TensorReader reader(cursor, alignment);
  for (std::int64_t i = 0; i < count; ++i) {
    KERNELPATH_TRY(tensor, reader.read());
    tensors.push_back(std::move(tensor));
  }
  cursor.set_place({});
  return tensors;
}

Result<void> check_gguf_data(GgufCursor& cursor, const std::vector<GgufTensor>& tensors,
                             std::int64_t data_bytes) {
  for (const GgufTensor& tensor : tensors) {
    // offset + bytes was formed, padded, when the row was read.
    if (tensor.offset + tensor.bytes <= data_bytes) continue;
    cursor.set_place(tensor.name);
    return cursor.broken(fmt::format("its data ends at byte {} of the data, but the file has {}",
                                     tensor.offset + tensor.bytes, data_bytes));
  }
  return {};
}

}  // namespace kernelpath::checkpoint
