#include "kernels/cpu/team.h"

#include "base/processors.h"

#include <algorithm>

namespace kernelpath::kernels::cpu {
namespace {

// Long enough for the imbalance of one operation, short enough not to starve a machine whose cores
// have other work.
constexpr int kSpins = 40000;
// Between two steps the sampler and the scheduler run; after that workers sleep.
constexpr int kIdleSpins = 100'000;

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// Spinning is of use where all threads run at the same time.
int spins_among(int threads, int spins) { return threads > usable_processors() ? 0 : spins; }

}  // namespace

Barrier::Barrier(int threads) : threads_(threads), spins_(spins_among(threads, kSpins)) {}

void Barrier::wait() {
  const std::uint32_t generation = generation_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
    arrived_.store(0, std::memory_order_relaxed);
    generation_.store(generation + 1, std::memory_order_release);
    generation_.notify_all();
    return;
  }
  for (int spin = 0; spin < spins_; ++spin) {
    if (generation_.load(std::memory_order_acquire) != generation) return;
    relax();
  }
  generation_.wait(generation, std::memory_order_acquire);
}

std::pair<std::int64_t, std::int64_t> Team::share(std::int64_t count, std::int64_t grain) const {
  const std::int64_t runs = (count + grain - 1) / grain;
  const auto edge = [&](std::int64_t place) {
    return std::min(count, runs * place / threads * grain);
  };
  return {edge(thread), edge(thread + 1)};
}

TeamPool::TeamPool(int threads)
    : threads_(std::max(threads, 1)),
      idle_spins_(spins_among(threads_, kIdleSpins)),
      meeting_(threads_),
      done_(threads_) {
  workers_.reserve(static_cast<std::size_t>(threads_ - 1));
  try {
    for (int thread = 1; thread < threads_; ++thread) {
      workers_.emplace_back([this, thread] { work(thread); });
    }
  } catch (...) {
    stop();
    throw;
  }
}

TeamPool::~TeamPool() { stop(); }

void TeamPool::stop() {
  stopping_.store(true, std::memory_order_relaxed);
  started_.fetch_add(1, std::memory_order_release);
  started_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void TeamPool::run(const std::function<void(const Team&)>& body) {
  if (threads_ == 1) {
    body(Team{});
    return;
  }
  body_ = &body;
  started_.fetch_add(1, std::memory_order_release);
  started_.notify_all();
  body(Team{.thread = 0, .threads = threads_, .meeting = &meeting_});
  done_.wait();
}

void TeamPool::work(int thread) {
  std::uint32_t seen = 0;
  while (true) {
    for (int spin = 0; spin < idle_spins_ && started_.load(std::memory_order_acquire) == seen;
         ++spin) {
      relax();
    }
    started_.wait(seen, std::memory_order_acquire);
    ++seen;
    if (stopping_.load(std::memory_order_relaxed)) return;
    (*body_)(Team{.thread = thread, .threads = threads_, .meeting = &meeting_});
    done_.wait();
  }
}

}  // namespace kernelpath::kernels::cpu
