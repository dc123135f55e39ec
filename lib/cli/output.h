#pragma once

#include "base/result.h"

#include <string>
#include <string_view>
#include <utility>

namespace kernelpath::cli {

// Where one report goes: standard output as it comes, or a file that appears under its name when it
// is complete.
class Output {
 public:
  static Output standard_output() { return Output(""); }
  static Output file(std::string path) { return Output(std::move(path)); }

  // Whether a file could be put in its place, as far as one can say before it is there: for what
  // takes long to make. Error: kRuntime.
  [[nodiscard]] Result<void> check() const;
  // Appends `text`. Errors: kRuntime. Once the reader of a pipe has closed it, nothing is written
  // and nothing is an error.
  Result<void> write(std::string_view text);
  // Makes what was written visible, on standard output.
  Result<void> flush();
  // Flushes, or puts the file in its place (write_file() says how).
  Result<void> commit();
  // The reader of the pipe is gone: no more answers are needed.
  [[nodiscard]] bool reader_is_gone() const { return reader_is_gone_; }

 private:
  explicit Output(std::string path) : path_(std::move(path)) {}

  std::string path_;  // empty for standard output
  std::string buffer_;
  bool reader_is_gone_ = false;
};

// Writes all of `text`, also over interruptions. False with errno set if that failed.
bool write_all(int fd, std::string_view text);

}  // namespace kernelpath::cli
