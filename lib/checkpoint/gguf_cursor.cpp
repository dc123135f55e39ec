#include "checkpoint/gguf_cursor.h"

#include "base/text.h"
#include "checkpoint/broken_file.h"

#include <fmt/format.h>

#include <utility>

namespace kernelpath::checkpoint {

Result<std::string_view> GgufCursor::bytes(std::size_t count) {
  if (count > left()) {
    return broken(fmt::format("the file ends early: {} bytes are needed at byte {}, {} are left",
                              count, position_, left()));
  }
  if (count > start_.size() - position_) {
    wants_more_ = true;
    return over_limit(
        fmt::format("what stands before the data is longer than the {} bytes read", start_.size()));
  }
  const std::string_view out = start_.substr(position_, count);
  position_ += count;
  return out;
}

Result<void> GgufCursor::skip(std::size_t count) {
  KERNELPATH_CHECK_OK(bytes(count));
  return {};
}

Result<std::string_view> GgufCursor::string(std::size_t longest) {
  KERNELPATH_TRY(length, number<std::uint64_t>());
  if (length > left()) {
    return broken(fmt::format("a string of {} bytes, but {} are left in the file", length, left()));
  }
  if (length > longest) {
    return broken(fmt::format("a string of {} bytes; the limit is {}", length, longest));
  }
  return bytes(static_cast<std::size_t>(length));
}

std::string GgufCursor::where() const {
  return place_.empty() ? fmt::format("byte {}", position_) : shorten(place_, 80);
}

Unexpected GgufCursor::broken(std::string message, std::string value) const {
  return broken_file(file_, where(), std::move(message), std::move(value));
}

Unexpected GgufCursor::over_limit(std::string message) const {
  return fail(Error{.code = ErrorCode::kInputLimit,
                    .message = std::move(message),
                    .file = file_,
                    .where = where()});
}

}  // namespace kernelpath::checkpoint
