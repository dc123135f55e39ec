#include "cli/output.h"

#include "base/file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

namespace kernelpath::cli {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 16;

}  // namespace

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

Result<void> Output::check() const {
  if (path_.empty()) return {};
  struct stat status = {};
  const bool exists = ::stat(path_.c_str(), &status) == 0;
  // A regular file is replaced by a new one beside it; others (/dev/stdout, a FIFO) are written to.
  const std::string folder = parent_path(path_);
  const bool replaced = !exists || S_ISREG(status.st_mode);
  if (exists && S_ISDIR(status.st_mode)) {
    errno = EISDIR;
  } else if (::access(replaced ? folder.c_str() : path_.c_str(), W_OK) == 0) {
    return {};
  }
  return fail({.code = ErrorCode::kRuntime,
               .message = fmt::format("cannot be written: {}", std::strerror(errno)),
               .file = path_});
}

Result<void> Output::write(std::string_view text) {
  if (reader_is_gone_) return {};
  buffer_ += text;
  if (buffer_.size() < kBufferBytes) return {};
  return flush();
}

Result<void> Output::flush() {
  if (!path_.empty() || reader_is_gone_ || buffer_.empty()) return {};
  const bool written = write_all(STDOUT_FILENO, buffer_);
  buffer_.clear();
  if (written) return {};
  if (errno == EPIPE) {
    reader_is_gone_ = true;
    return {};
  }
  return fail({.code = ErrorCode::kRuntime,
               .message = fmt::format("writing failed: {}", std::strerror(errno)),
               .file = "standard output"});
}

Result<void> Output::commit() {
  if (path_.empty()) return flush();
  return write_file(path_, buffer_);
}

}  // namespace kernelpath::cli
