#pragma once

#include "base/error.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace kernelpath::cli {

enum class LogLevel : std::uint8_t { kError, kWarn, kInfo, kDebug };

struct LogStyle {
  LogLevel level = LogLevel::kWarn;  // what is less important is not written
  bool json = false;                 // --log-json: every line a JSON object
  bool json_errors = false;          // a JSON format was asked: errors are JSON objects
  bool hints = true;                 // a hint below what it belongs to
  bool color = false;
};

// Standard error: everything that is not the answer. One line a message, in one write.
class Log {
 public:
  explicit Log(std::string program, LogStyle style = {}, int fd = 2);

  void set_style(const LogStyle& style) { style_ = style; }
  [[nodiscard]] const LogStyle& style() const { return style_; }

  // "PROGRAM: error[CODE]: FILE: WHERE: MESSAGE (VALUE)" and "  hint: …".
  void error(const Error& error) const;
  // Something that the user asked to be told by the exit code (--require).
  void finding(std::string_view message) const;
  void warn(std::string_view message) const { line(LogLevel::kWarn, message); }
  void info(std::string_view message) const { line(LogLevel::kInfo, message); }
  void debug(std::string_view message) const { line(LogLevel::kDebug, message); }
  // What is being done, without a level: for programs that take a while. Not with --quiet.
  void note(std::string_view message) const;
  // "hint: …", for text output only.
  void hint(std::string_view message) const;

 private:
  void line(LogLevel level, std::string_view message) const;
  void put(std::string_view text) const;

  std::string program_;
  LogStyle style_;
  int fd_;
};

// The error as one JSON object on one line (schema/error.schema.json).
std::string error_json(const Error& error);

// The hint of an error with its near matches; empty if there is nothing to say.
std::string hint_text(const Error& error);

}  // namespace kernelpath::cli
