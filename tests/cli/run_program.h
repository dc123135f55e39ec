#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace kernelpath::testing {

// Whether programs and tests are built with a sanitizer, which maps terabytes of its own: what they
// take of memory says nothing then, and limits of it end them.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kUnderSanitizer = true;
#else
inline constexpr bool kUnderSanitizer = false;
#endif

// How a program is started: no shell, an environment of its own.
struct Call {
  std::vector<std::string> arguments = {};
  std::string input = {};        // its standard input
  std::string input_file = {};   // or a file
  bool keep_input_open = false;  // no end of input behind `input`
  std::string output_file = {};  // takes its standard output, which Outcome::out then lacks
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::string folder = {};      // working directory; empty: the test's
  int close_output_after = -1;  // close its standard output after so many bytes; -1: read all
  int signal_after_output = 0;  // send this signal once it has written something
  int signal_after_note = 0;    // or once it has written something to standard error
  int signals = 1;              // so many of them at once
  int timeout_s = 60;
};

struct Outcome {
  std::string out;
  std::string err;
  int exit_code = -1;  // 128 + n if signal n ended it, -1 if it had to be killed after timeout_s
  std::int64_t peak_memory_kib = 0;
  double cpu_s = 0;  // of the program and the system for it; a busy machine does not change it
};

// Runs a program of this build ("llm-inspect"), or the one of an absolute path, to its end.
Outcome run_program(const std::string& program, const Call& call);

// Runs a program of this build with a pseudo-terminal as all its streams and nothing but
// `environment`
// ("NAME=value"). What the terminal got, and the exit code, -1 where a signal ended it.
std::pair<std::string, int> run_on_terminal(const std::string& program,
                                            std::vector<std::string> arguments,
                                            std::vector<std::string> environment);

// llm-inspect with `arguments`.
Outcome inspect(std::vector<std::string> arguments);

// A folder that goes away with the test.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] std::string path(const std::string& name) const { return path_ / name; }
  [[nodiscard]] std::string path() const { return path_; }
  // Writes a file, with its folders, and returns its path.
  [[nodiscard]] std::string write(const std::string& name, const std::string& content) const;

 private:
  std::filesystem::path path_;
};

std::string read_file(const std::string& path);

// tests/data/configs/NAME
std::string config_folder(const std::string& name);

}  // namespace kernelpath::testing
