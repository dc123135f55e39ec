#include "run_program.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <poll.h>
#include <pty.h>
#include <stdexcept>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace kernelpath::testing {
namespace {

using Clock = std::chrono::steady_clock;

// Both ends of a pipe; closes what is still open.
class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  [[nodiscard]] int reading() const { return ends_[0]; }
  [[nodiscard]] int writing() const { return ends_[1]; }
  void close_end(std::size_t end) {
    if (ends_[end] >= 0) close(ends_[end]);
    ends_[end] = -1;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> environment_of(const Call& call) {
  std::vector<std::string> out = {"PATH=/usr/bin:/bin", "HOME=/nonexistent"};
  // Sanitizers read their options from the environment.
  for (const char* name : {"ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS"}) {
    const char* value = std::getenv(name);
    if (value != nullptr) out.push_back(std::string(name) + "=" + value);
  }
  for (const auto& [name, value] : call.environment) out.push_back(name + "=" + value);
  return out;
}

// Runs in the child; async-signal-safe calls only.
[[noreturn]] void become(const Call& call, char* const* argv, char* const* envp, int in, int out,
                         int err) {
  dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  if (!call.folder.empty() && chdir(call.folder.c_str()) != 0) _exit(126);
  execve(argv[0], argv, envp);
  _exit(127);
}

// Moves what is readable into `text`; false at the end.
bool drain(int fd, std::string& text) {
  std::array<char, 1 << 16> block{};
  const ssize_t count = read(fd, block.data(), block.size());
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  text.append(block.data(), static_cast<std::size_t>(count));
  return count > 0;
}

// Writes what fits of the input; false when all of it is written or nobody reads.
bool feed(int fd, const std::string& input, std::size_t& written) {
  const ssize_t count = write(fd, input.data() + written, input.size() - written);
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  written += static_cast<std::size_t>(count);
  return written < input.size();
}

class Exchange {
 public:
  Exchange(const Call& call, pid_t child, Pipe& in, Pipe& out, Pipe& err)
      : call_(call), child_(child), in_(in), out_(out), err_(err) {
    if (call.input.empty() && !call.keep_input_open) in_.close_end(1);
    fcntl(in_.writing(), F_SETFL, O_NONBLOCK);
  }

  // Until both streams of the child are at their end; false if it took too long.
  bool run(Outcome& outcome) {
    const auto end = Clock::now() + std::chrono::seconds(call_.timeout_s);
    while (out_.reading() >= 0 || err_.reading() >= 0) {
      std::array<pollfd, 3> files{{{out_.reading(), POLLIN, 0},
                                   {err_.reading(), POLLIN, 0},
                                   {fed_ ? -1 : in_.writing(), POLLOUT, 0}}};
      if (poll(files.data(), files.size(), 100) < 0 && errno != EINTR) return false;
      if (Clock::now() > end) return false;
      if (files[2].revents != 0) feed_input();
      if (files[0].revents != 0 && !drain(out_.reading(), outcome.out)) out_.close_end(0);
      if (files[1].revents != 0 && !drain(err_.reading(), outcome.err)) err_.close_end(0);
      react(outcome);
    }
    return true;
  }

 private:
  void feed_input() {
    if (feed(in_.writing(), call_.input, written_)) return;
    fed_ = true;
    if (!call_.keep_input_open) in_.close_end(1);
  }

  void react(const Outcome& outcome) {
    const bool enough = call_.close_output_after >= 0 &&
                        outcome.out.size() >= static_cast<std::size_t>(call_.close_output_after);
    if (enough) out_.close_end(0);
    if (call_.signal_after_output != 0 && !signalled_ && !outcome.out.empty()) {
      send(call_.signal_after_output);
    }
    if (call_.signal_after_note != 0 && !signalled_ && !outcome.err.empty()) {
      send(call_.signal_after_note);
    }
  }

  void send(int signal) {
    signalled_ = true;
    for (int i = 0; i < call_.signals; ++i) {
      if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      kill(child_, signal);
    }
  }

  const Call& call_;
  pid_t child_;
  Pipe& in_;
  Pipe& out_;
  Pipe& err_;
  std::size_t written_ = 0;
  bool fed_ = false;
  bool signalled_ = false;
};

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

Outcome run_program(const std::string& program, const Call& call) {
  std::signal(SIGPIPE, SIG_IGN);
  const bool is_path = program.starts_with('/');
  std::vector<std::string> argv = {is_path ? program
                                           : std::string(KERNELPATH_BIN_DIR) + "/" + program};
  argv.insert(argv.end(), call.arguments.begin(), call.arguments.end());
  std::vector<std::string> envp = environment_of(call);
  const std::vector<char*> argv_pointers = pointers(argv);
  const std::vector<char*> envp_pointers = pointers(envp);
  Pipe in;
  Pipe out;
  Pipe err;
  const int input_file =
      call.input_file.empty() ? -1 : open(call.input_file.c_str(), O_RDONLY | O_CLOEXEC);
  const int output_file =
      call.output_file.empty() ? -1 : open(call.output_file.c_str(), O_WRONLY | O_CLOEXEC);
  const pid_t child = fork();
  if (child == 0) {
    become(call, argv_pointers.data(), envp_pointers.data(),
           input_file >= 0 ? input_file : in.reading(),
           output_file >= 0 ? output_file : out.writing(), err.writing());
  }
  in.close_end(0);
  out.close_end(1);
  err.close_end(1);
  if (input_file >= 0) close(input_file);
  if (output_file >= 0) close(output_file);
  Outcome outcome;
  const bool ended = Exchange(call, child, in, out, err).run(outcome);
  if (!ended) kill(child, SIGKILL);
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  outcome.cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  outcome.peak_memory_kib = usage.ru_maxrss;
  if (ended) outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

std::pair<std::string, int> run_on_terminal(const std::string& program,
                                            std::vector<std::string> arguments,
                                            std::vector<std::string> environment) {
  int master = -1;
  const pid_t child = forkpty(&master, nullptr, nullptr, nullptr);
  if (child == 0) {
    std::string path = std::string(KERNELPATH_BIN_DIR) + "/" + program;
    std::vector<char*> argv = {path.data()};
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    std::vector<char*> envp;
    for (std::string& variable : environment) envp.push_back(variable.data());
    envp.push_back(nullptr);
    execve(path.c_str(), argv.data(), envp.data());
    _exit(127);
  }
  std::string out(1 << 20, '\0');
  std::size_t size = 0;
  ssize_t count = 0;
  while ((count = read(master, out.data() + size, out.size() - size)) > 0) {
    size += static_cast<std::size_t>(count);
  }
  out.resize(size);
  int status = 0;
  waitpid(child, &status, 0);
  close(master);
  return {out, WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

Outcome inspect(std::vector<std::string> arguments) {
  return run_program("llm-inspect", {.arguments = std::move(arguments)});
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = std::filesystem::temp_directory_path() / "kernelpath-test.XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::write(const std::string& name, const std::string& content) const {
  const std::filesystem::path file = path_ / name;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << content;
  return file;
}

std::string read_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string config_folder(const std::string& name) {
  return std::string(KERNELPATH_TEST_DATA) + "/configs/" + name;
}

}  // namespace kernelpath::testing
