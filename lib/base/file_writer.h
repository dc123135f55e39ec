#pragma once

#include "base/result.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace kernelpath {

// Writes all of `text` unless the system refuses; returns how many bytes it took, fewer than all
// with errno set.
std::size_t write_as_much_as_fits(int descriptor, std::string_view text);

// A file that is written piece by piece and replaces what stands under its name when it is
// complete: until then its bytes lie in a temporary file beside it. Follows symbolic links; devices
// and FIFOs are written directly.
class FileWriter {
 public:
  // Error: kRuntime.
  static Result<std::unique_ptr<FileWriter>> open(const std::string& path);

  // Without commit() or keep_part() the file stays as it was.
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  FileWriter(FileWriter&&) = delete;
  FileWriter& operator=(FileWriter&&) = delete;

  // Error: kRuntime; nothing can be written behind one.
  Result<void> write(std::string_view text);
  // Puts the file in its place. Error: kRuntime.
  Result<void> commit();
  // Instead of commit(): what was written until now becomes PATH.partial, whose path is returned;
  // empty where there is nothing to keep.
  std::string keep_part();

 private:
  FileWriter(std::string path, std::string target, std::string temporary, int descriptor);
  bool close();

  std::string path_;       // as it was asked for
  std::string target_;     // what it leads to
  std::string temporary_;  // empty: nothing to rename or to remove
  int descriptor_;
  off_t written_ = 0;
};

}  // namespace kernelpath
