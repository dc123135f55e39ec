#pragma once

#include "base/result.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace kernelpath::cli {

// Lines of a descriptor, in constant memory however long a line is.
class LineReader {
 public:
  // `before_wait` runs before each read that may block: what is finished should be visible by then.
  LineReader(int fd, std::size_t longest, std::function<Result<void>()> before_wait);

  struct Line {
    std::string_view text;    // without the line end; valid until the next call
    std::int64_t number = 0;  // from 1
    bool too_long = false;    // text is then empty
    bool end = false;         // no line: the input has ended, or a signal asked to stop
  };
  // Errors: kRuntime with the system's reason, and those of `before_wait`.
  Result<Line> next();

 private:
  Result<void> fill();                        // reads more bytes, or sets ended_
  Line take(std::size_t end, bool too_long);  // the line that ends before `end`

  int fd_;
  std::size_t longest_;
  std::function<Result<void>()> before_wait_;
  std::string buffer_;
  std::size_t start_ = 0;    // of the next line in buffer_
  std::size_t scanned_ = 0;  // no line end stands before this
  std::int64_t number_ = 0;
  bool ended_ = false;
};

}  // namespace kernelpath::cli
