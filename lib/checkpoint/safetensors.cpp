#include "checkpoint/safetensors.h"

#include "base/checked.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "checkpoint/broken_file.h"
#include "checkpoint/incomplete_download.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace kernelpath::checkpoint {
namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::string_view kMetadata = "__metadata__";

// The length of the JSON part, checked against what the file has and against the limit.
Result<std::size_t> header_length(std::string_view start, std::size_t file_bytes,
                                  const std::string& file) {
  if (auto error = incomplete_download(start, file, "safetensors")) return fail(std::move(*error));
  if (file_bytes < kLengthBytes || start.size() < kLengthBytes) {
    return broken_file(
        file, "byte 0",
        fmt::format("{} bytes long; a safetensors file starts with 8 bytes of length", file_bytes));
  }
  std::uint64_t length = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) {
    length = (length << 8U) | static_cast<std::uint8_t>(start[i]);
  }
  if (length == 0) return broken_file(file, "byte 0", "the header is empty");
  if (length > file_bytes - kLengthBytes) {
    return broken_file(file, "byte 0",
                       fmt::format("the header's length is {}, but {} bytes are left in the file",
                                   length, file_bytes - kLengthBytes));
  }
  if (length > kMaxHeaderBytes) {
    return fail(Error{.code = ErrorCode::kInputLimit,
                      .message = fmt::format("the header is {} bytes long, the limit is {}", length,
                                             kMaxHeaderBytes),
                      .file = file,
                      .where = "byte 0"});
  }
  return static_cast<std::size_t>(length);
}

// Reads one header into tensors.
class HeaderReader {
 public:
  HeaderReader(const std::string& file, std::size_t header_bytes, std::size_t data_bytes,
               const ReadOptions& options)
      : file_(file), options_(options) {
    header_.header_bytes = static_cast<std::int64_t>(header_bytes);
    header_.data_bytes = static_cast<std::int64_t>(data_bytes);
  }

  Result<Header> read(const json::Document& document) {
    KERNELPATH_CHECK_OK(refuse_duplicates(document));
    header_.tensors.reserve(document.root.members().size());
    for (const json::Member& member : document.root.members()) {
      if (member.key == kMetadata) {
        KERNELPATH_CHECK_OK(check_metadata(member.value));
      } else {
        KERNELPATH_TRY(tensor, read_tensor(member));
        header_.tensors.push_back(std::move(tensor));
      }
    }
    KERNELPATH_CHECK_OK(check_layout());
    return std::move(header_);
  }

 private:
  // The JSON reader keeps the last of two equal keys; two tensors of one name are never meant.
  Result<void> refuse_duplicates(const json::Document& document) {
    for (const json::Warning& warning : document.warnings) {
      const bool in_metadata = warning.where.starts_with(fmt::format("/{}/", kMetadata));
      const bool repeats = warning.code == "JSON-DUPLICATE-KEY" && !in_metadata;
      if (repeats || warning.code == "JSON-MORE-WARNINGS") {
        return broken_file(file_, warning.where, warning.message);
      }
    }
    return {};
  }

  Result<void> check_metadata(const json::Value& metadata) {
    if (metadata.is_null()) return {};
    if (!metadata.is_object()) {
      return broken_file(file_, std::string(kMetadata),
                         fmt::format("must be an object, found {}", type_name(metadata.type())));
    }
    for (const json::Member& entry : metadata.members()) {
      if (entry.value.is_string()) continue;
      return broken_file(file_, fmt::format("{}/{}", kMetadata, json::pointer_token(entry.key)),
                         fmt::format("must be a string, found {}", type_name(entry.value.type())),
                         entry.value.brief());
    }
    return {};
  }

  Result<Tensor> read_tensor(const json::Member& member) {
    Tensor tensor{.name = member.key, .dtype = {}, .shape = {}};
    if (!member.value.is_object()) {
      return broken_file(file_, tensor.name,
                         fmt::format("must be an object, found {}", type_name(member.value.type())),
                         member.value.brief());
    }
    KERNELPATH_CHECK_OK(read_dtype(member.value, tensor));
    KERNELPATH_CHECK_OK(read_shape(member.value, tensor));
    KERNELPATH_CHECK_OK(read_range(member.value, tensor));
    return tensor;
  }

  Result<void> read_dtype(const json::Value& entry, Tensor& tensor) {
    const json::Value* const dtype = entry.find("dtype");
    if (dtype == nullptr || !dtype->is_string()) {
      return broken_file(file_, tensor.name, "dtype is missing or no string",
                         dtype == nullptr ? "" : dtype->brief());
    }
    const Dtype* const known = find_dtype(dtype->as_string());
    if (known == nullptr) return broken_file(file_, tensor.name, "unknown dtype", dtype->brief());
    tensor.dtype = *known;
    return {};
  }

  Result<void> read_shape(const json::Value& entry, Tensor& tensor) {
    const json::Value* const shape = entry.find("shape");
    if (shape == nullptr || !shape->is_array()) {
      return broken_file(file_, tensor.name, "shape is missing or no list",
                         shape == nullptr ? "" : shape->brief());
    }
    std::int64_t elements = 1;
    bool is_empty = false;
    bool fits = true;
    for (const json::Value& size : shape->items()) {
      if (!size.is_integer() || size.as_integer() < 0) {
        return broken_file(file_, tensor.name,
                           "a size must be an integer of 0 or more that fits 64 bits",
                           size.brief());
      }
      tensor.shape.push_back(size.as_integer());
      is_empty = is_empty || size.as_integer() == 0;
      const auto product = checked_mul(elements, size.as_integer());
      fits = fits && product;
      elements = product.value_or(0);
    }
    if (is_empty) return {};
    const auto bytes = fits ? dtype_bytes(tensor.dtype, elements) : std::nullopt;
    if (!fits || (!bytes && !checked_mul(elements, tensor.dtype.bits))) {
      return broken_file(file_, tensor.name, "the product of the shape does not fit 64 bits",
                         shape->brief());
    }
    if (!bytes) {
      return broken_file(
          file_, tensor.name,
          fmt::format("{} values of {} bits do not fill whole bytes", elements, tensor.dtype.bits),
          shape->brief());
    }
    tensor.bytes = *bytes;
    return {};
  }

  Result<void> read_range(const json::Value& entry, Tensor& tensor) {
    const json::Value* const offsets = entry.find("data_offsets");
    const bool is_pair = offsets != nullptr && offsets->is_array() &&
                         offsets->items().size() == 2 && offsets->items()[0].is_integer() &&
                         offsets->items()[1].is_integer();
    if (!is_pair) {
      return broken_file(file_, tensor.name, "data_offsets must be two integers",
                         offsets == nullptr ? "" : offsets->brief());
    }
    tensor.begin = offsets->items()[0].as_integer();
    const std::int64_t end = offsets->items()[1].as_integer();
    if (tensor.begin < 0 || end < tensor.begin || end > header_.data_bytes) {
      return broken_file(file_, tensor.name,
                         fmt::format("data_offsets must be a range within the {} bytes of data",
                                     header_.data_bytes),
                         offsets->brief());
    }
    if (end - tensor.begin == tensor.bytes) return {};
    return broken_file(file_, tensor.name,
                       fmt::format("data_offsets span {} bytes, but shape and dtype {} need {}",
                                   end - tensor.begin, tensor.dtype.name, tensor.bytes),
                       offsets->brief());
  }

  // No two tensors share bytes; unused bytes are an error only to the strict.
  Result<void> check_layout() {
    std::vector<const Tensor*> order;
    for (const Tensor& tensor : header_.tensors) {
      if (tensor.bytes > 0) order.push_back(&tensor);
    }
    std::sort(order.begin(), order.end(),
              [](const Tensor* a, const Tensor* b) { return a->begin < b->begin; });
    std::int64_t end = 0;
    const Tensor* previous = nullptr;
    const Tensor* after_gap = nullptr;
    for (const Tensor* const tensor : order) {
      if (tensor->begin < end) {
        return broken_file(file_, tensor->name,
                           fmt::format("overlaps tensor {}, which ends at byte {} of the data",
                                       previous->name, end),
                           std::to_string(tensor->begin));
      }
      if (tensor->begin > end && after_gap == nullptr) after_gap = tensor;
      end = tensor->begin + tensor->bytes;
      previous = tensor;
    }
    if (after_gap != nullptr) {
      KERNELPATH_CHECK_OK(unused("SAFETENSORS-GAP", after_gap->name,
                                 "bytes before this tensor belong to no tensor"));
    }
    if (end == header_.data_bytes) return {};
    return unused("SAFETENSORS-TAIL", fmt::format("byte {}", header_.header_bytes + end),
                  fmt::format("{} byte{} after the last tensor", header_.data_bytes - end,
                              header_.data_bytes - end == 1 ? "" : "s"));
  }

  Result<void> unused(std::string code, std::string where, std::string message) {
    if (options_.strict) return broken_file(file_, std::move(where), std::move(message));
    header_.warnings.push_back(
        {std::move(code), fmt::format("{}:{}", file_name(file_), where), std::move(message)});
    return {};
  }

  const std::string& file_;
  ReadOptions options_;
  Header header_;
};

}  // namespace

Result<Header> parse_safetensors(std::string_view start, std::size_t file_bytes,
                                 const std::string& file, const ReadOptions& options) {
  KERNELPATH_TRY(length, header_length(start, file_bytes, file));
  if (start.size() - kLengthBytes < length || start[kLengthBytes] != '{') {
    return broken_file(file, "byte 8", "the header must start with '{'");
  }
  const json::Limits limits{.max_bytes = kMaxHeaderBytes, .max_members = kMaxMembers};
  auto document = json::parse_object(std::string(start.substr(kLengthBytes, length)), file, limits);
  if (!document) {
    Error error = std::move(document).error();
    if (error.code == ErrorCode::kInputJson) error.code = ErrorCode::kCheckpoint;
    error.message = fmt::format("in the header: {}", error.message);
    return fail(std::move(error));
  }
  const std::size_t header_bytes = kLengthBytes + length;
  return HeaderReader(file, header_bytes, file_bytes - header_bytes, options).read(*document);
}

Result<Header> read_safetensors(const std::string& path, const ReadOptions& options) {
  // Most headers are short: one read brings the length and the rest.
  constexpr std::size_t kUsualHeader = std::size_t{64} << 10;
  KERNELPATH_TRY(front, read_file_start(path, kUsualHeader));
  KERNELPATH_TRY(length, header_length(front.text, front.file_bytes, path));
  if (kLengthBytes + length <= front.text.size()) {
    return parse_safetensors(front.text, front.file_bytes, path, options);
  }
  KERNELPATH_TRY(whole, read_file_start(path, kLengthBytes + length));
  return parse_safetensors(whole.text, whole.file_bytes, path, options);
}

}  // namespace kernelpath::checkpoint
