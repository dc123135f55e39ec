#include "tokenizer/child_process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace kernelpath::tokenizer {
namespace {

constexpr std::size_t kMaxErrorBytes = 4096;

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(); }

  void close() {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
  }
  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] bool is_open() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

Unexpected system_error(const std::string& what, int error) {
  return fail({.code = ErrorCode::kUnavailable, .message = what + ": " + std::strerror(error)});
}

// The two ends of a connection; `ours` does not block. A socket and not a pipe: writing to one
// whose reader is gone gives an error and no signal.
struct Connection {
  Descriptor ours;
  Descriptor theirs;
};
Result<Connection> connect() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return system_error("socketpair", errno);
  }
  Connection connection{Descriptor(ends[0]), Descriptor(ends[1])};
  if (fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) return system_error("fcntl", errno);
  return connection;
}

// A running child. Killed and waited for when the object goes, so that none is left behind.
class Child {
 public:
  Child() = default;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (id_ <= 0) return;
    kill();
    static_cast<void>(wait());
  }

  Result<void> start(std::span<const std::string> arguments, std::array<int, 3> streams);
  void kill() const { ::kill(id_, SIGKILL); }

  // The status of waitpid().
  int wait() {
    int status = 0;
    while (waitpid(id_, &status, 0) < 0 && errno == EINTR) {
    }
    id_ = -1;
    return status;
  }

 private:
  pid_t id_ = -1;
};

Result<void> Child::start(std::span<const std::string> arguments, std::array<int, 3> streams) {
  posix_spawn_file_actions_t actions{};
  posix_spawn_file_actions_init(&actions);
  for (int i = 0; i < 3; ++i) {
    posix_spawn_file_actions_adddup2(&actions, streams[static_cast<std::size_t>(i)], i);
  }
  // Signals that this process ignores or blocks are the child's to handle.
  posix_spawnattr_t attributes{};
  posix_spawnattr_init(&attributes);
  sigset_t signals{};
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  sigaddset(&signals, SIGPIPE);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<std::string> words(arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const int error =
      posix_spawnp(&id_, pointers.front(), &actions, &attributes, pointers.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    id_ = -1;
    return system_error("cannot run " + words.front(), error);
  }
  return {};
}

// Feeds and drains the streams of a child until both outputs are at their end.
class Exchange {
 public:
  Exchange(std::string_view input, const ProcessLimits& limits)
      : input_(input), limits_(limits), deadline_(Clock::now() + limits.time) {}

  Result<void> start(std::span<const std::string> arguments, Child& child);

  // kExited where the streams ended by themselves.
  ProcessResult::End run(ProcessResult& result);

 private:
  using Clock = std::chrono::steady_clock;

  void write_some();
  // False at the end of the stream. Keeps at most `limit` bytes and drops the rest.
  static bool read_some(const Descriptor& from, std::string& to, std::size_t limit);

  std::string_view input_;
  ProcessLimits limits_;
  Clock::time_point deadline_;
  Descriptor in_;
  Descriptor out_;
  Descriptor err_;
};

Result<void> Exchange::start(std::span<const std::string> arguments, Child& child) {
  KERNELPATH_TRY(in, connect());
  KERNELPATH_TRY(out, connect());
  KERNELPATH_TRY(err, connect());
  KERNELPATH_CHECK_OK(
      child.start(arguments, {in.theirs.number(), out.theirs.number(), err.theirs.number()}));
  in_ = std::move(in.ours);
  out_ = std::move(out.ours);
  err_ = std::move(err.ours);
  return {};
}

void Exchange::write_some() {
  const ssize_t written = send(in_.number(), input_.data(), input_.size(), MSG_NOSIGNAL);
  if (written > 0) input_.remove_prefix(static_cast<std::size_t>(written));
  const bool is_gone = written < 0 && errno != EAGAIN && errno != EINTR;
  // The child reads to the end of its input.
  if (input_.empty() || is_gone) in_.close();
}

bool Exchange::read_some(const Descriptor& from, std::string& to, std::size_t limit) {
  std::array<char, 65536> buffer{};
  const ssize_t count = read(from.number(), buffer.data(), buffer.size());
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  const std::size_t room = limit - std::min(limit, to.size());
  to.append(buffer.data(), std::min(static_cast<std::size_t>(count), room));
  return count > 0;
}

ProcessResult::End Exchange::run(ProcessResult& result) {
  if (input_.empty()) in_.close();
  while (out_.is_open() || err_.is_open()) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now()).count();
    if (left <= 0) return ProcessResult::End::kTimedOut;
    // poll() passes over negative descriptors.
    std::array<pollfd, 3> streams = {{{.fd = in_.number(), .events = POLLOUT, .revents = 0},
                                      {.fd = out_.number(), .events = POLLIN, .revents = 0},
                                      {.fd = err_.number(), .events = POLLIN, .revents = 0}}};
    const int timeout = static_cast<int>(std::min<long long>(left + 1, 1000));
    if (poll(streams.data(), streams.size(), timeout) < 0 && errno != EINTR) break;
    if (streams[0].revents != 0) write_some();
    if (streams[1].revents != 0 && !read_some(out_, result.output, limits_.output_bytes + 1)) {
      out_.close();
    }
    if (streams[2].revents != 0 && !read_some(err_, result.errors, kMaxErrorBytes)) err_.close();
    if (result.output.size() > limits_.output_bytes) return ProcessResult::End::kTooMuchOutput;
  }
  return ProcessResult::End::kExited;
}

}  // namespace

Result<ProcessResult> run_process(std::span<const std::string> arguments, std::string_view input,
                                  const ProcessLimits& limits) {
  Child child;
  Exchange exchange(input, limits);
  KERNELPATH_CHECK_OK(exchange.start(arguments, child));
  ProcessResult result;
  result.end = exchange.run(result);
  if (result.end != ProcessResult::End::kExited) {
    child.kill();
    static_cast<void>(child.wait());
    return result;
  }
  const int status = child.wait();
  if (WIFSIGNALED(status)) {
    result.end = ProcessResult::End::kKilled;
    result.code = WTERMSIG(status);
  } else {
    result.code = WEXITSTATUS(status);
  }
  return result;
}

}  // namespace kernelpath::tokenizer
