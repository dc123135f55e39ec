#include "base/file.h"
#include "base/file_writer.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

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

std::string temporary_name(const std::string& target) {
  return fmt::format("{}.{}.tmp", target, ::getpid());
}

// A new file beside `target`, with the mode of the old one; -1 with errno set.
int open_temporary(const std::string& temporary, const struct stat* old) {
  ::unlink(temporary.c_str());  // of an earlier process with this number that was killed
  const int descriptor =
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kNewFileMode);
  if (descriptor < 0 || old == nullptr) return descriptor;
  if (::fchmod(descriptor, old->st_mode & kPermissionBits) == 0) return descriptor;
  const int reason = errno;
  ::close(descriptor);
  ::unlink(temporary.c_str());
  errno = reason;
  return -1;
}

}  // namespace

std::size_t write_as_much_as_fits(int descriptor, std::string_view text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = ::write(descriptor, text.data() + done, text.size() - done);
    if (written < 0 && errno != EINTR) break;
    if (written > 0) done += static_cast<std::size_t>(written);
  }
  return done;
}

Result<std::unique_ptr<FileWriter>> FileWriter::open(const std::string& path) {
  struct stat status = {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) {
    errno = EISDIR;
    return write_error(path);
  }
  std::string target = path;
  std::string temporary;
  int descriptor = -1;
  if (exists && !S_ISREG(status.st_mode)) {
    descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
  } else {
    if (exists) {
      // A link stays a link: what it leads to is replaced.
      const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                             &std::free);
      if (!real) return write_error(path);
      target = real.get();
    }
    temporary = temporary_name(target);
    descriptor = open_temporary(temporary, exists ? &status : nullptr);
  }
  if (descriptor < 0) return write_error(path);
  return std::unique_ptr<FileWriter>(
      new FileWriter(path, std::move(target), std::move(temporary), descriptor));
}

FileWriter::FileWriter(std::string path, std::string target, std::string temporary, int descriptor)
    : path_(std::move(path)),
      target_(std::move(target)),
      temporary_(std::move(temporary)),
      descriptor_(descriptor) {}

FileWriter::~FileWriter() {
  static_cast<void>(close());
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

bool FileWriter::close() {
  const int descriptor = std::exchange(descriptor_, -1);
  return descriptor < 0 || ::close(descriptor) == 0;
}

Result<void> FileWriter::write(std::string_view text) {
  const std::size_t done = write_as_much_as_fits(descriptor_, text);
  written_ += static_cast<off_t>(done);
  if (done == text.size()) return {};
  return write_error(path_);
}

Result<void> FileWriter::commit() {
  if (!close()) return write_error(path_);
  if (temporary_.empty()) return {};
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) return write_error(path_);
  temporary_.clear();
  return {};
}

std::string FileWriter::keep_part() {
  if (temporary_.empty() || written_ == 0) return {};
  static_cast<void>(close());
  std::string part = target_ + ".partial";
  if (::rename(temporary_.c_str(), part.c_str()) != 0) return {};
  temporary_.clear();
  return part;
}

Result<void> write_file(const std::string& path, std::string_view text) {
  KERNELPATH_TRY(file, FileWriter::open(path));
  KERNELPATH_CHECK_OK(file->write(text));
  return file->commit();
}

}  // namespace kernelpath
