#pragma once

#include "base/result.h"

#include <memory>
#include <string>
#include <string_view>

namespace kernelpath::cli {

// Where one report goes: standard output, or a file that appears under its name only when it is
// complete.
class Output {
 public:
  static std::unique_ptr<Output> standard_output();

  // A regular or new file is written beside its place under a temporary name; anything else (a
  // device, a pipe) is written directly. Errors: kRuntime with the system's reason.
  static Result<std::unique_ptr<Output>> file(const std::string& path);

  ~Output();  // removes the temporary file of an Output that was not committed
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Buffers `text`. Errors: kRuntime. Once the reader has closed the pipe, nothing is written and
  // nothing is an error.
  Result<void> write(std::string_view text);
  Result<void> flush();
  // Flushes, closes and renames.
  Result<void> commit();
  // The reader of the pipe is gone: no more answers are needed.
  [[nodiscard]] bool reader_is_gone() const { return reader_is_gone_; }

 private:
  Output(int fd, std::string path, std::string temporary_path);
  [[nodiscard]] Error system_error(std::string_view what) const;

  int fd_;
  std::string path_;            // empty for standard output
  std::string temporary_path_;  // empty where path_ is written directly
  std::string buffer_;
  bool reader_is_gone_ = false;
};

// Writes all of `text`, also over interruptions. False with errno set if that failed.
bool write_all(int fd, std::string_view text);

}  // namespace kernelpath::cli
