#include "cli/signals.h"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <fcntl.h>
#include <initializer_list>
#include <unistd.h>

namespace kernelpath::cli {
namespace {

// A handler has nothing else to write to.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
volatile std::sig_atomic_t g_stop_signal = 0;

// When it came; 0: none has.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<std::int64_t> g_stop_time_ns = 0;
static_assert(std::atomic<std::int64_t>::is_always_lock_free, "a handler waits for no lock");

// One wish to stop may come as several signals: timeout(1), mpirun and shells signal a process and
// then its group. So the next one counts from half a second on.
extern "C" void remember_signal(int number) {
  constexpr std::int64_t kSameWish_ns = 500'000'000;
  std::timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t now_ns = std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  std::int64_t first_ns = 0;
  if (g_stop_time_ns.compare_exchange_strong(first_ns, now_ns)) {
    g_stop_signal = number;
  } else if (now_ns - first_ns > kSameWish_ns) {
    static_cast<void>(std::signal(number, SIG_DFL));
    static_cast<void>(std::raise(number));  // delivered when this handler returns
  }
}

}  // namespace

void install_signal_handlers() {
  static_cast<void>(std::signal(SIGPIPE, SIG_IGN));
  static_cast<void>(std::signal(SIGXFSZ, SIG_IGN));
  struct sigaction action {};
  action.sa_handler = remember_signal;
  // No SA_RESTART: a blocked read must return so that what is complete can be written.
  action.sa_flags = 0;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction inherited {};
    sigaction(number, nullptr, &inherited);
    if (inherited.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);
  }
}

int stop_signal() { return g_stop_signal; }

void open_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) == -1) static_cast<void>(open("/dev/null", O_RDONLY | O_CLOEXEC));
  }
}

}  // namespace kernelpath::cli
