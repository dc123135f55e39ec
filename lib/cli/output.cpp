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
  return write_as_much_as_fits(fd, text) == text.size();
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
  if (failed_) return fail(*failed_);
  if (reader_is_gone_) return {};
  buffer_ += text;
  if (buffer_.size() < kBufferBytes) return {};
  return path_.empty() ? to_standard_output() : to_file();
}

Result<void> Output::flush() {
  if (!path_.empty()) return {};
  return to_standard_output();
}

Result<void> Output::commit() {
  if (path_.empty()) return to_standard_output();
  KERNELPATH_CHECK_OK(to_file());
  Result<void> placed = file_->commit();
  if (!placed) return give_up(std::move(placed).error());
  file_.reset();
  return {};
}

// Hands the buffer to the system.
Result<void> Output::to_standard_output() {
  if (reader_is_gone_ || buffer_.empty()) return {};
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

Result<void> Output::to_file() {
  if (failed_) return fail(*failed_);
  if (!file_) {
    Result<std::unique_ptr<FileWriter>> opened = FileWriter::open(path_);
    if (!opened) return give_up(std::move(opened).error());
    file_ = std::move(*opened);
  }
  const std::string text = std::exchange(buffer_, {});
  Result<void> written = file_->write(text);
  if (!written) return give_up(std::move(written).error());
  return {};
}

Unexpected Output::give_up(Error error) {
  const std::string part = keeps_part_ && file_ ? file_->keep_part() : "";
  if (!part.empty()) error.hint = "what was written until then is in " + part;
  file_.reset();
  buffer_.clear();
  failed_ = error;
  return fail(std::move(error));
}

}  // namespace kernelpath::cli
