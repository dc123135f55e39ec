#include "checkpoint/gguf.h"

#include "base/checked.h"
#include "base/file.h"
#include "base/text.h"
#include "checkpoint/gguf_file.h"
#include "checkpoint/gguf_metadata.h"
#include "checkpoint/gguf_tensors.h"
#include "checkpoint/incomplete_download.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace kernelpath::checkpoint {
namespace {

constexpr std::uint32_t kOldestVersion = 2;
constexpr std::uint32_t kNewestVersion = 3;
constexpr std::uint32_t kVersionHalf = 0xffff;
// A pair: key length, one byte of key, type, one byte of value. A tensor: name length, number of
// dimensions, type, offset.
constexpr std::size_t kLeastPairBytes = 14;
constexpr std::size_t kLeastTensorBytes = 24;
constexpr std::string_view kAlignmentKey = "general.alignment";

// Reads the front of one file.
class HeaderReader {
 public:
  HeaderReader(std::string_view start, std::size_t file_bytes, const std::string& file,
               const ReadOptions& options)
      : cursor_(start, file_bytes, file), start_(start), file_(file), options_(options) {}

  Result<Gguf> read() {
    KERNELPATH_CHECK_OK(read_magic());
    KERNELPATH_CHECK_OK(read_version());
    KERNELPATH_TRY(tensors, read_count(kLeastTensorBytes, kMaxGgufTensors, "tensors"));
    KERNELPATH_TRY(pairs, read_count(kLeastPairBytes, kMaxGgufPairs, "pairs"));
    KERNELPATH_TRY(metadata, read_gguf_pairs(cursor_, pairs));
    gguf_.pairs = std::move(metadata);
    KERNELPATH_CHECK_OK(read_alignment());
    KERNELPATH_TRY(table, read_gguf_tensors(cursor_, tensors, gguf_.alignment));
    gguf_.tensors = std::move(table);
    KERNELPATH_CHECK_OK(check_data());
    return std::move(gguf_);
  }

  [[nodiscard]] bool wants_more() const { return cursor_.wants_more(); }

 private:
  Result<void> read_magic() {
    if (auto error = incomplete_download(start_, file_, "GGUF")) return fail(std::move(*error));
    if (starts_like_gguf(start_)) return cursor_.skip(kGgufMagic.size());
    return cursor_.broken(fmt::format("a GGUF file begins with \"{}\"", kGgufMagic),
                          shorten(escape_for_terminal(start_.substr(0, kGgufMagic.size())), 16));
  }

  Result<void> read_version() {
    KERNELPATH_TRY(version, cursor_.number<std::uint32_t>());
    if (version != 0 && (version & kVersionHalf) == 0) {
      return cursor_.broken("a big-endian GGUF file; only little-endian ones are read",
                            fmt::format("{:#010x}", version));
    }
    if (version < kOldestVersion || version > kNewestVersion) {
      return cursor_.broken(
          fmt::format("GGUF versions {} and {} are read", kOldestVersion, kNewestVersion),
          std::to_string(version));
    }
    gguf_.version = version;
    return {};
  }

  Result<std::int64_t> read_count(std::size_t least_bytes, std::int64_t limit,
                                  std::string_view what) {
    KERNELPATH_TRY(count, cursor_.number<std::int64_t>());
    if (count < 0 || static_cast<std::uint64_t>(count) > cursor_.left() / least_bytes) {
      return cursor_.broken(
          fmt::format("the file cannot hold so many {}: {} bytes are left", what, cursor_.left()),
          std::to_string(count));
    }
    if (count > limit) {
      return cursor_.over_limit(fmt::format("{} {}; the limit is {}", count, what, limit));
    }
    return count;
  }

  Result<void> read_alignment() {
    const GgufValue* const value = gguf_.find(kAlignmentKey);
    cursor_.set_place(kAlignmentKey);
    if (value == nullptr) return {};
    if (value->type != GgufType::kUint32) {
      return cursor_.broken("must be of type u32", std::string(gguf_type_name(value->type)));
    }
    const auto alignment = static_cast<std::uint32_t>(value->integers.front());
    if (!std::has_single_bit(alignment)) {
      return cursor_.broken("must be a power of two", std::to_string(alignment));
    }
    gguf_.alignment = alignment;
    return {};
  }

  Result<void> check_data() {
    const auto walked = static_cast<std::int64_t>(cursor_.position());
    const auto begin = gguf_padded(walked, gguf_.alignment);
    const std::int64_t file_bytes = walked + static_cast<std::int64_t>(cursor_.left());
    gguf_.header_bytes = std::min(begin.value_or(file_bytes), file_bytes);
    const std::int64_t data_bytes = file_bytes - gguf_.header_bytes;
    KERNELPATH_CHECK_OK(check_gguf_data(cursor_, gguf_.tensors, data_bytes));
    std::int64_t end = 0;
    for (const GgufTensor& tensor : gguf_.tensors) {
      gguf_.tensor_bytes += tensor.bytes;  // less than the data, which was just checked
      end = tensor.offset + gguf_padded(tensor.bytes, gguf_.alignment).value_or(tensor.bytes);
    }
    if (data_bytes <= end) return {};
    std::string message = fmt::format("{} byte{} after the last tensor", data_bytes - end,
                                      data_bytes - end == 1 ? "" : "s");
    cursor_.set_place({});
    if (options_.strict) return cursor_.broken(std::move(message));
    gguf_.warnings.push_back({"GGUF-TAIL",
                              fmt::format("{}:byte {}", file_name(file_), gguf_.header_bytes + end),
                              std::move(message)});
    return {};
  }

  GgufCursor cursor_;
  std::string_view start_;
  const std::string& file_;
  ReadOptions options_;
  Gguf gguf_;
};

}  // namespace

const GgufValue* Gguf::find(std::string_view key) const {
  const auto found = std::ranges::find(pairs, key, &GgufPair::key);
  return found == pairs.end() ? nullptr : &found->value;
}

bool starts_like_gguf(std::string_view start) { return start.starts_with(kGgufMagic); }

Result<Gguf> parse_gguf(std::string_view start, std::size_t file_bytes, const std::string& file,
                        const ReadOptions& options) {
  return HeaderReader(start, file_bytes, file, options).read();
}

namespace detail {

Result<Gguf> read_gguf_file(const std::string& path, const ReadOptions& options) {
  constexpr std::size_t kFirstRead = std::size_t{4} << 20;
  constexpr std::size_t kGrowth = 4;
  for (std::size_t bytes = kFirstRead;; bytes = std::min(bytes * kGrowth, kMaxGgufHeaderBytes)) {
    KERNELPATH_TRY(front, read_file_start(path, bytes));
    HeaderReader reader(front.text, front.file_bytes, path, options);
    auto gguf = reader.read();
    if (gguf || !reader.wants_more() || bytes == kMaxGgufHeaderBytes) return gguf;
  }
}

}  // namespace detail

}  // namespace kernelpath::checkpoint
