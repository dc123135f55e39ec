#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace kernelpath::kernels::cpu {

// Threads meet here. They spin for a while, since the others are about to come, and then sleep.
// Where there are more threads than processors they sleep at once: those whom they wait for need
// the processors.
class Barrier {
 public:
  // `threads` at least 1. Counts the processors that the calling thread may use now.
  explicit Barrier(int threads);
  void wait();
  // How often a thread looks before it sleeps.
  [[nodiscard]] int spins() const { return spins_; }

 private:
  const int threads_;
  const int spins_;
  std::atomic<int> arrived_{0};
  std::atomic<std::uint32_t> generation_{0};
};

// One thread's place among those that run the same code (SPMD).
struct Team {
  int thread = 0;
  int threads = 1;
  Barrier* meeting = nullptr;  // may be null for one thread

  void barrier() const {
    if (threads > 1) meeting->wait();
  }

  // This thread's part [first, last) of `count` items, handed out in runs of `grain`.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> share(std::int64_t count,
                                                            std::int64_t grain = 1) const;
};

// A fixed set of threads; the calling one is thread 0. One call of run() at a time.
class TeamPool {
 public:
  // Throws std::system_error where the system gives no more threads.
  explicit TeamPool(int threads);
  ~TeamPool();
  TeamPool(const TeamPool&) = delete;
  TeamPool& operator=(const TeamPool&) = delete;

  [[nodiscard]] int threads() const { return threads_; }
  // Runs `body` once on every thread and returns when all have returned from it.
  void run(const std::function<void(const Team&)>& body);

 private:
  void work(int thread);
  void stop();

  const int threads_;
  const int idle_spins_;
  Barrier meeting_;
  Barrier done_;
  std::atomic<std::uint32_t> started_{0};
  std::atomic<bool> stopping_{false};
  const std::function<void(const Team&)>* body_ = nullptr;
  std::vector<std::thread> workers_;
};

}  // namespace kernelpath::kernels::cpu
