#include "cli/line_reader.h"

#include "cli/signals.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <unistd.h>
#include <utility>

namespace kernelpath::cli {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 16;

}  // namespace

LineReader::LineReader(int fd, std::size_t longest, std::function<Result<void>()> before_wait)
    : fd_(fd), longest_(longest), before_wait_(std::move(before_wait)) {}

Result<void> LineReader::fill() {
  KERNELPATH_CHECK_OK(before_wait_());
  buffer_.erase(0, start_);
  scanned_ -= start_;
  start_ = 0;
  const std::size_t size = buffer_.size();
  buffer_.resize(size + kBlockBytes);
  ssize_t count = -1;
  do {
    if (stop_signal() != 0) count = 0;
    if (count != 0) count = read(fd_, buffer_.data() + size, kBlockBytes);
  } while (count < 0 && errno == EINTR);
  const int reason = errno;
  buffer_.resize(size + static_cast<std::size_t>(count < 0 ? 0 : count));
  if (count < 0) {
    return fail({.code = ErrorCode::kRuntime,
                 .message = std::string("reading failed: ") + std::strerror(reason)});
  }
  if (count == 0) ended_ = true;
  return {};
}

LineReader::Line LineReader::take(std::size_t end, bool too_long) {
  const std::size_t last = std::min(end, buffer_.size());
  Line line{.text = std::string_view(buffer_).substr(start_, last - start_),
            .number = ++number_,
            .too_long = too_long || last - start_ > longest_};
  if (line.too_long) line.text = {};
  start_ = std::min(last + 1, buffer_.size());
  scanned_ = start_;
  return line;
}

Result<LineReader::Line> LineReader::next() {
  bool too_long = false;
  while (true) {
    const std::size_t end = buffer_.find('\n', scanned_);
    if (end != std::string::npos) return take(end, too_long);
    // A line that a signal cut off is no request.
    if (stop_signal() != 0) return Line{.text = {}, .number = number_, .end = true};
    const bool rest = start_ < buffer_.size() || too_long;
    if (ended_ && rest) return take(buffer_.size(), too_long);
    if (ended_) return Line{.text = {}, .number = number_, .end = true};
    scanned_ = buffer_.size();
    if (buffer_.size() - start_ > longest_) {
      // The rest of the line is read and forgotten.
      too_long = true;
      start_ = buffer_.size();
    }
    KERNELPATH_CHECK_OK(fill());
  }
}

}  // namespace kernelpath::cli
