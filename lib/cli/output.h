#pragma once

#include "base/file_writer.h"
#include "base/result.h"

#include <memory>
#include <optional>
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
  // What takes long to make is not thrown away: where a file cannot be completed, what was written
  // of it stays beside it, and the error says where.
  void keep_part() { keeps_part_ = true; }
  // Appends `text`. Errors: kRuntime. Once the reader of a pipe has closed it, nothing is written
  // and nothing is an error.
  Result<void> write(std::string_view text);
  // Makes what was written visible, on standard output.
  Result<void> flush();
  // Flushes, or puts the file in its place (FileWriter says how).
  Result<void> commit();
  // The reader of the pipe is gone: no more answers are needed.
  [[nodiscard]] bool reader_is_gone() const { return reader_is_gone_; }

 private:
  explicit Output(std::string path) : path_(std::move(path)) {}
  Result<void> to_standard_output();
  Result<void> to_file();
  // Nothing behind an error makes the file complete again.
  Unexpected give_up(Error error);

  std::string path_;  // empty for standard output
  std::string buffer_;
  std::unique_ptr<FileWriter> file_;  // once there is something to write to it
  std::optional<Error> failed_;
  bool keeps_part_ = false;
  bool reader_is_gone_ = false;
};

// Writes all of `text`, also over interruptions. False with errno set if that failed.
bool write_all(int fd, std::string_view text);

}  // namespace kernelpath::cli
