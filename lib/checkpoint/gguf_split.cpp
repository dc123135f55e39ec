// Models that are split over files: NAME-00001-of-00003.gguf and so on. Source: llama.cpp 0c1e5709,
// src/llama-model-loader.cpp (the constructor) and src/llama.cpp (llama_split_path).
#include "base/file.h"
#include "base/text.h"
#include "checkpoint/broken_file.h"
#include "checkpoint/gguf.h"
#include "checkpoint/gguf_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace kernelpath::checkpoint {
namespace {

constexpr std::string_view kNumberKey = "split.no";
constexpr std::string_view kCountKey = "split.count";
constexpr std::string_view kTensorsKey = "split.tensors.count";

// An integer of exactly that type; nothing where the key is not there.
Result<std::optional<std::int64_t>> read_integer(const Gguf& gguf, std::string_view key,
                                                 GgufType type, const std::string& file) {
  const GgufValue* const value = gguf.find(key);
  if (value == nullptr) return std::optional<std::int64_t>{};
  if (value->type == type) return std::optional(value->integers.front());
  return broken_file(file, key, fmt::format("must be of type {}", gguf_type_name(type)),
                     std::string(gguf_type_name(value->type)));
}

std::string part_suffix(std::int64_t number, std::int64_t count) {
  return fmt::format("-{:05}-of-{:05}.gguf", number + 1, count);
}

// Reads the parts behind the first one into it.
class PartReader {
 public:
  PartReader(Gguf& first, std::string path, std::int64_t count, const ReadOptions& options)
      : gguf_(first), path_(std::move(path)), count_(count), options_(options) {}

  Result<void> read() {
    KERNELPATH_CHECK_OK(check_first());
    for (std::int64_t number = 1; number < count_; ++number) {
      KERNELPATH_CHECK_OK(read_part(number));
    }
    gguf_.parts = count_;
    return check_total();
  }

 private:
  Result<void> check_first() {
    KERNELPATH_TRY(number, read_integer(gguf_, kNumberKey, GgufType::kUint16, path_));
    if (!number) return broken_file(path_, kNumberKey, "the key of a split file is missing");
    const std::string suffix = part_suffix(*number, count_);
    if (!path_.ends_with(suffix)) {
      return broken_file(
          path_, kNumberKey,
          fmt::format("the file says that it is part {} of {}; then its name must end "
                      "in {}",
                      *number + 1, count_, suffix));
    }
    prefix_ = path_.substr(0, path_.size() - suffix.size());
    if (*number == 0) return {};
    return broken_file(path_, kNumberKey,
                       fmt::format("part {} of {}; the model begins with {}", *number + 1, count_,
                                   file_name(prefix_ + part_suffix(0, count_))));
  }

  Result<void> read_part(std::int64_t number) {
    const std::string path = prefix_ + part_suffix(number, count_);
    if (!is_file(path)) {
      return fail(Error{.code = ErrorCode::kInputMissing,
                        .message = fmt::format("part {} of {} is missing", number + 1, count_),
                        .file = path});
    }
    KERNELPATH_TRY(part, detail::read_gguf_file(path, options_));
    KERNELPATH_TRY(stated, read_integer(part, kNumberKey, GgufType::kUint16, path));
    if (!stated) return broken_file(path, kNumberKey, "the key of a split file is missing");
    if (*stated != number) {
      return broken_file(path, kNumberKey,
                         fmt::format("expected {}, for part {} of {}", number, number + 1, count_),
                         std::to_string(*stated));
    }
    KERNELPATH_TRY(count, read_integer(part, kCountKey, GgufType::kUint16, path));
    if (count && *count != count_) {
      return broken_file(path, kCountKey, fmt::format("the first part says {}", count_),
                         std::to_string(*count));
    }
    return append(part, number, path);
  }

  Result<void> append(Gguf& part, std::int64_t number, const std::string& path) {
    if (gguf_.tensors.size() + part.tensors.size() > static_cast<std::size_t>(kMaxGgufTensors)) {
      return fail(
          Error{.code = ErrorCode::kInputLimit,
                .message = fmt::format("more than {} tensors in all parts", kMaxGgufTensors),
                .file = path});
    }
    for (GgufTensor& tensor : part.tensors) tensor.part = number;
    gguf_.tensor_bytes += part.tensor_bytes;
    gguf_.files.push_back({path, part.header_bytes});
    std::ranges::move(part.tensors, std::back_inserter(gguf_.tensors));
    std::ranges::move(part.warnings, std::back_inserter(gguf_.warnings));
    return {};
  }

  Result<void> check_total() {
    std::unordered_set<std::string_view> names;
    for (const GgufTensor& tensor : gguf_.tensors) {
      if (names.insert(tensor.name).second) continue;
      return broken_file(path_, tensor.name, "the tensor stands in two parts");
    }
    KERNELPATH_TRY(total, read_integer(gguf_, kTensorsKey, GgufType::kInt32, path_));
    if (!total) return broken_file(path_, kTensorsKey, "the key of a split file is missing");
    if (*total == static_cast<std::int64_t>(gguf_.tensors.size())) return {};
    return broken_file(path_, kTensorsKey,
                       fmt::format("the parts hold {} tensors", gguf_.tensors.size()),
                       std::to_string(*total));
  }

  Gguf& gguf_;
  std::string path_;
  std::string prefix_;
  std::int64_t count_;
  ReadOptions options_;
};

}  // namespace

Result<Gguf> read_gguf(const std::string& path, const ReadOptions& options) {
  KERNELPATH_TRY(gguf, detail::read_gguf_file(path, options));
  gguf.files = {{path, gguf.header_bytes}};
  KERNELPATH_TRY(count, read_integer(gguf, kCountKey, GgufType::kUint16, path));
  if (count.value_or(1) > 1) {
    KERNELPATH_CHECK_OK(PartReader(gguf, path, *count, options).read());
  }
  return std::move(gguf);
}

}  // namespace kernelpath::checkpoint
