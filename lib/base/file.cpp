#include "base/file.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace kernelpath {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{64} << 10;

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return number_; }
  // Closes it now; false if the system reports that written data is lost.
  bool close() { return ::close(std::exchange(number_, -1)) == 0; }

 private:
  int number_;
};

std::string system_reason(int number) {
  // strerror is not thread-safe everywhere; this form of strerror_r (GNU) is.
  std::array<char, 128> buffer = {};
  return ::strerror_r(number, buffer.data(), buffer.size());
}

// The error of a system call that looked for, opened or read `path`.
Error system_error(int number, const std::string& path) {
  Error error{.file = path};
  switch (number) {
    case ENOENT:
    case ENOTDIR:
      error.code = ErrorCode::kInputMissing;
      error.message = "no such file";
      break;
    case ENAMETOOLONG:
      error.code = ErrorCode::kInputMissing;
      error.message = "no such file: the name is too long";
      break;
    case ELOOP:
      error.code = ErrorCode::kInputKind;
      error.message = "too many links: the symbolic links lead in a circle";
      break;
    case EACCES:
    case EPERM:
      error.code = ErrorCode::kInputPermission;
      error.message = fmt::format("cannot be read: {}", system_reason(number));
      break;
    default:
      error.code = ErrorCode::kRuntime;
      error.message = fmt::format("cannot be read: {}", system_reason(number));
  }
  return error;
}

Error not_a_file(mode_t mode, const std::string& path) {
  std::string_view kind = "a special file";
  if (S_ISDIR(mode)) kind = "a folder";
  if (S_ISFIFO(mode)) kind = "a FIFO";
  if (S_ISSOCK(mode)) kind = "a socket";
  if (S_ISCHR(mode)) kind = "a character device";
  if (S_ISBLK(mode)) kind = "a block device";
  return {.code = ErrorCode::kInputKind,
          .message = fmt::format("not a regular file but {}", kind),
          .file = path};
}

Error too_long(std::size_t bytes, std::size_t max_bytes, const std::string& path) {
  return {.code = ErrorCode::kInputLimit,
          .message = fmt::format("{} bytes long, the limit is {}", bytes, max_bytes),
          .file = path};
}

// Reads what a descriptor gives until its end, or until one byte more than `max_bytes`. `expected`
// is the length that it probably has.
Result<std::string> read_to_end(int descriptor, const std::string& path, std::size_t max_bytes,
                                std::size_t expected) {
  std::string text;
  text.reserve(expected + 1 + kReadPadding);
  while (text.size() <= max_bytes) {
    const std::size_t before = text.size();
    const std::size_t chunk = before <= expected ? expected + 1 - before : kChunkBytes;
    text.resize(before + std::min(chunk, max_bytes + 1 - before));
    ssize_t got = 0;
    do {
      got = ::read(descriptor, text.data() + before, text.size() - before);
    } while (got < 0 && errno == EINTR);
    if (got < 0) return fail(system_error(errno, path));
    text.resize(before + static_cast<std::size_t>(got));
    if (got == 0) break;
  }
  return text;
}

struct OpenFile {
  Descriptor descriptor;
  struct stat status = {};
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(status.st_size); }
};

// Opens a regular file. It is looked at before it is opened (opening a device may do something) and
// again after that (it may have been replaced in between); O_NONBLOCK keeps a FIFO from waiting.
Result<std::unique_ptr<OpenFile>> open_file(const std::string& path) {
  if (path.empty() || path.find('\0') != std::string::npos) {
    return fail(system_error(ENOENT, path));
  }
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return fail(system_error(errno, path));
  if (!S_ISREG(status.st_mode)) return fail(not_a_file(status.st_mode, path));
  constexpr int kFlags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
  std::unique_ptr<OpenFile> file(new OpenFile{Descriptor(::open(path.c_str(), kFlags))});
  if (file->descriptor.get() < 0) return fail(system_error(errno, path));
  if (::fstat(file->descriptor.get(), &file->status) != 0) return fail(system_error(errno, path));
  if (!S_ISREG(file->status.st_mode)) return fail(not_a_file(file->status.st_mode, path));
  return file;
}

bool same_time(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

// Did the file stay what it was, and does the path still lead to it?
bool is_unchanged(const OpenFile& file, const std::string& path, std::size_t bytes_read) {
  struct stat now = {};
  struct stat named = {};
  if (::fstat(file.descriptor.get(), &now) != 0) return false;
  if (::stat(path.c_str(), &named) != 0) return false;
  const struct stat& before = file.status;
  // Files of /proc say that they are empty.
  const bool all_read = before.st_size == 0 || bytes_read == file.size();
  return all_read && now.st_size == before.st_size && same_time(now.st_mtim, before.st_mtim) &&
         named.st_dev == before.st_dev && named.st_ino == before.st_ino;
}

Error changed(const std::string& path) {
  return {.code = ErrorCode::kInputChanged,
          .message = "file changed while it was read",
          .file = path,
          .hint = "run the command again when nothing writes to it"};
}

bool is_link(const std::string& path) {
  struct stat status = {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode);
}

std::string real_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                         &std::free);
  return real ? std::string(real.get()) : std::string();
}

}  // namespace

namespace detail {

Result<FileContents> read_file(const std::string& path, std::size_t max_bytes,
                               const std::function<void()>& while_reading) {
  KERNELPATH_TRY(file, open_file(path));
  if (file->size() > max_bytes) return fail(too_long(file->size(), max_bytes, path));
  KERNELPATH_TRY(text, read_to_end(file->descriptor.get(), path, max_bytes, file->size()));
  if (while_reading) while_reading();
  if (!is_unchanged(*file, path, text.size())) return fail(changed(path));
  if (text.size() > max_bytes) return fail(too_long(text.size(), max_bytes, path));
  return FileContents{
      .text = std::move(text),
      .outside_target = is_link(path) ? target_outside(path, parent_path(path)) : std::string()};
}

}  // namespace detail

Result<FileContents> read_file(const std::string& path, std::size_t max_bytes) {
  return detail::read_file(path, max_bytes, {});
}

Result<FileStart> read_file_start(const std::string& path, std::size_t max_bytes) {
  KERNELPATH_TRY(file, open_file(path));
  const std::size_t wanted = std::min(max_bytes, file->size());
  if (wanted == 0) return FileStart{.text = {}, .file_bytes = file->size()};
  KERNELPATH_TRY(text, read_to_end(file->descriptor.get(), path, wanted - 1, wanted));
  if (!is_unchanged(*file, path, file->size()) || text.size() != wanted) {
    return fail(changed(path));
  }
  return FileStart{.text = std::move(text), .file_bytes = file->size()};
}

Result<std::string> read_stream(int descriptor, const std::string& name, std::size_t max_bytes) {
  KERNELPATH_TRY(text, read_to_end(descriptor, name, max_bytes, kChunkBytes));
  if (text.size() <= max_bytes) return std::move(text);
  return fail(Error{.code = ErrorCode::kInputLimit,
                    .message = fmt::format("longer than the limit of {} bytes", max_bytes),
                    .file = name});
}

Result<PathKind> path_kind(const std::string& path) {
  if (path.find('\0') != std::string::npos) return PathKind::kMissing;
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) {
    Error error = system_error(errno, path);
    if (error.code == ErrorCode::kInputMissing) return PathKind::kMissing;
    return fail(std::move(error));
  }
  if (S_ISREG(status.st_mode)) return PathKind::kFile;
  return S_ISDIR(status.st_mode) ? PathKind::kFolder : PathKind::kOther;
}

bool is_file(const std::string& path) {
  const auto kind = path_kind(path);
  return kind && *kind == PathKind::kFile;
}

std::string target_outside(const std::string& path, const std::string& folder) {
  std::string real = real_path(path);
  std::string inside = real_path(folder);
  if (real.empty() || inside.empty()) return {};
  if (real.starts_with(inside.back() == '/' ? inside : inside + '/')) return {};
  const std::string parent = parent_path(inside);
  if (file_name(parent) == "snapshots" && real.starts_with(parent_path(parent) + "/blobs/")) {
    return {};
  }
  return real;
}

Result<std::string> find_in_folder(const std::string& folder,
                                   std::span<const std::string_view> names) {
  std::string special;
  for (const std::string_view name : names) {
    std::string path = join_path(folder, name);
    KERNELPATH_TRY(kind, path_kind(path));
    if (kind == PathKind::kFile) return path;
    if (kind != PathKind::kMissing && special.empty()) special = std::move(path);
  }
  if (!special.empty()) {
    struct stat status = {};
    static_cast<void>(::stat(special.c_str(), &status));
    return fail(not_a_file(status.st_mode, special));
  }
  const std::vector<std::string> looked_for(names.begin(), names.end());
  return fail(Error{.code = ErrorCode::kInputKind,
                    .message = fmt::format("no {} in {}", looked_for.front(), folder),
                    .file = folder,
                    .hint = fmt::format("looked for {}", join_words(looked_for, "and"))});
}

Result<std::vector<std::string>> list_folder(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(folder.c_str()), &::closedir);
  if (!stream) return fail(system_error(errno, folder));
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string join_path(std::string_view folder, std::string_view name) {
  std::string path(folder);
  if (!path.empty() && path.back() != '/') path += '/';
  return path.append(name);
}

std::string parent_path(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return std::string(path.substr(0, slash == 0 ? 1 : slash));
}

std::string file_name(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return std::string(path.substr(path.rfind('/') + 1));
}

}  // namespace kernelpath
