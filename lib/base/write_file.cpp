#include "base/file.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

namespace kernelpath {
namespace {

constexpr mode_t kNewFileMode = 0666;  // the umask takes from it
constexpr mode_t kPermissionBits = 07777;

Unexpected write_error(const std::string& path) {
  std::array<char, 128> buffer = {};
  const char* const reason = ::strerror_r(errno, buffer.data(), buffer.size());
  return fail(Error{.code = ErrorCode::kRuntime,
                    .message = fmt::format("cannot be written: {}", reason),
                    .file = path});
}

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// Writes to what is no regular file (/dev/stdout, a FIFO), which cannot be replaced.
Result<void> write_directly(const std::string& path, std::string_view text) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
  if (descriptor < 0) return write_error(path);
  const bool written = write_all(descriptor, text);
  const bool closed = ::close(descriptor) == 0;
  if (written && closed) return {};
  return write_error(path);
}

Result<void> replace(const std::string& target, const struct stat* old, std::string_view text) {
  const std::string temporary = fmt::format("{}.{}.tmp", target, ::getpid());
  ::unlink(temporary.c_str());  // of an earlier process with this number that was killed
  const int descriptor =
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kNewFileMode);
  if (descriptor < 0) return write_error(target);
  const bool mode_kept =
      old == nullptr || ::fchmod(descriptor, old->st_mode & kPermissionBits) == 0;
  const bool written = mode_kept && write_all(descriptor, text);
  const bool closed = ::close(descriptor) == 0;
  if (written && closed && ::rename(temporary.c_str(), target.c_str()) == 0) return {};
  const int reason = errno;
  ::unlink(temporary.c_str());
  errno = reason;
  return write_error(target);
}

}  // namespace

Result<void> write_file(const std::string& path, std::string_view text) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return replace(path, nullptr, text);
  if (S_ISDIR(status.st_mode)) {
    errno = EISDIR;
    return write_error(path);
  }
  if (!S_ISREG(status.st_mode)) return write_directly(path, text);
  // A link stays a link: what it leads to is replaced.
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                         &std::free);
  if (!real) return write_error(path);
  return replace(real.get(), &status, text);
}

}  // namespace kernelpath
