#pragma once

#include "base/result.h"

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath {

// Spare bytes reserved behind a text that is read, so that a JSON parser's padding needs no copy.
inline constexpr std::size_t kReadPadding = 64;

struct FileContents {
  std::string text;
  // Where a symbolic link led out of the file's folder: the real path of the file; else empty.
  std::string outside_target;
};

// Reads a regular file whole. A file longer than `max_bytes` is refused before it is read, a FIFO
// or device without being opened. Errors: kInputMissing, kInputKind, kInputPermission, kInputLimit,
// kInputChanged (it changed size, time or identity while it was read), kRuntime (the system failed
// to read).
Result<FileContents> read_file(const std::string& path, std::size_t max_bytes);

// At most the first `max_bytes` of a regular file, which may be longer; `file_bytes` is its length.
// Errors as read_file, but for kInputLimit.
struct FileStart {
  std::string text;
  std::size_t file_bytes = 0;
};
Result<FileStart> read_file_start(const std::string& path, std::size_t max_bytes);

// Reads a stream (standard input) to its end. `name` stands in errors.
Result<std::string> read_stream(int descriptor, const std::string& name, std::size_t max_bytes);

enum class PathKind { kMissing, kFile, kFolder, kOther };

// What stands at a path, links followed. Errors: kInputPermission, kInputKind (a loop of links).
Result<PathKind> path_kind(const std::string& path);

// Is there a regular file that the system lets us look at?
bool is_file(const std::string& path);

// Real path of a file whose symbolic links lead out of the folder `folder`; empty if it stays
// inside or does not exist.
std::string target_outside(const std::string& path, const std::string& folder);

// The first of `names` that is a file in `folder`, with the folder in front. Errors: kInputKind,
// naming what was looked for or what stands there instead of a file; what path_kind gives.
Result<std::string> find_in_folder(const std::string& folder,
                                   std::span<const std::string_view> names);

// Names in a folder that are not "." or "..", sorted by bytes. Errors as path_kind, kInputMissing.
Result<std::vector<std::string>> list_folder(const std::string& folder);

// "a/b" for folder "a" and name "b"; "b" for an empty folder.
std::string join_path(std::string_view folder, std::string_view name);
// "a" of "a/b", "." of "b", "/" of "/b".
std::string parent_path(std::string_view path);
// The last component: "b" of "a/b" and of "a/b/".
std::string file_name(std::string_view path);

// Replaces a file by `text`, or leaves it as it was: writes a temporary file beside it and renames
// that. Follows symbolic links; devices and FIFOs are written directly. Error: kRuntime.
Result<void> write_file(const std::string& path, std::string_view text);

namespace detail {
// read_file with a hook between reading and checking, for tests of changing files.
Result<FileContents> read_file(const std::string& path, std::size_t max_bytes,
                               const std::function<void()>& while_reading);
}  // namespace detail

}  // namespace kernelpath
