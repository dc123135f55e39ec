#include "cli/output.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kernelpath::cli {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 16;

// mkstemp() makes files private; a report gets the permissions of any new file.
void apply_umask(int fd) {
  const mode_t mask = umask(0);
  umask(mask);
  static_cast<void>(fchmod(fd, 0666 & ~mask));
}

Error cannot_create(const std::string& path) {
  return {.code = ErrorCode::kRuntime,
          .message = std::string("the file cannot be written: ") + std::strerror(errno),
          .file = path};
}

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

Output::Output(int fd, std::string path, std::string temporary_path)
    : fd_(fd), path_(std::move(path)), temporary_path_(std::move(temporary_path)) {}

std::unique_ptr<Output> Output::standard_output() {
  return std::unique_ptr<Output>(new Output(STDOUT_FILENO, "", ""));
}

Result<std::unique_ptr<Output>> Output::file(const std::string& path) {
  struct stat status {};
  const bool exists = stat(path.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode)) {
    const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return fail(cannot_create(path));
    return std::unique_ptr<Output>(new Output(fd, path, ""));
  }
  std::string temporary = path + ".XXXXXX";
  const int fd = mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) return fail(cannot_create(path));
  apply_umask(fd);
  return std::unique_ptr<Output>(new Output(fd, path, temporary));
}

Output::~Output() {
  if (path_.empty()) return;
  if (fd_ >= 0) close(fd_);
  if (!temporary_path_.empty()) unlink(temporary_path_.c_str());
}

Error Output::system_error(std::string_view what) const {
  return {.code = ErrorCode::kRuntime,
          .message = fmt::format("{}: {}", what, std::strerror(errno)),
          .file = path_.empty() ? "standard output" : path_};
}

Result<void> Output::write(std::string_view text) {
  if (reader_is_gone_) return {};
  buffer_ += text;
  if (buffer_.size() < kBufferBytes) return {};
  return flush();
}

Result<void> Output::flush() {
  if (reader_is_gone_ || buffer_.empty()) return {};
  const bool written = write_all(fd_, buffer_);
  buffer_.clear();
  if (written) return {};
  if (errno == EPIPE) {
    reader_is_gone_ = true;
    return {};
  }
  return fail(system_error("writing failed"));
}

Result<void> Output::commit() {
  KERNELPATH_CHECK_OK(flush());
  if (path_.empty()) return {};
  const int closed = close(fd_);
  fd_ = -1;
  if (closed != 0) return fail(system_error("closing failed"));
  if (temporary_path_.empty()) return {};
  if (rename(temporary_path_.c_str(), path_.c_str()) != 0) {
    return fail(system_error("renaming the finished file failed"));
  }
  temporary_path_.clear();
  return {};
}

}  // namespace kernelpath::cli
