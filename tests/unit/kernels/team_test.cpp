// Threads that run the same code, their shares and where they meet.
#include "kernels/cpu/team.h"

#include "base/processors.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <sched.h>
#include <vector>

namespace kernelpath::kernels::cpu {
namespace {

TEST(Team, Shares_CoverEverythingOnce) {
  for (const int threads : {1, 3, 7}) {
    std::int64_t next = 0;
    for (int thread = 0; thread < threads; ++thread) {
      const Team team{.thread = thread, .threads = threads};
      const auto [begin, end] = team.share(100, 16);
      EXPECT_EQ(begin, next);
      next = end;
    }
    EXPECT_EQ(next, 100);
  }
}

TEST(Team, Barrier_HoldsWithMoreThreadsThanCores) {
  TeamPool pool(9);
  std::vector<int> counts(9);
  for (int round = 0; round < 50; ++round) {
    pool.run([&](const Team& team) {
      ++counts[static_cast<std::size_t>(team.thread)];
      team.barrier();
      for (const int count : counts) EXPECT_EQ(count, round + 1);
      team.barrier();
    });
  }
}

// Binds this thread to one of its processors while it lives.
class OneProcessor {
 public:
  OneProcessor() {
    CPU_ZERO(&before_);
    EXPECT_EQ(sched_getaffinity(0, sizeof(before_), &before_), 0);
    int first = 0;
    while (!CPU_ISSET(static_cast<unsigned>(first), &before_)) ++first;
    cpu_set_t one{};
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(first), &one);
    EXPECT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  }
  ~OneProcessor() { EXPECT_EQ(sched_setaffinity(0, sizeof(before_), &before_), 0); }
  OneProcessor(const OneProcessor&) = delete;
  OneProcessor& operator=(const OneProcessor&) = delete;

 private:
  cpu_set_t before_{};
};

TEST(Barrier, MoreThreadsThanProcessors_SleepAtOnce) {
  EXPECT_EQ(Barrier(usable_processors() + 1).spins(), 0);
}

TEST(Barrier, AThreadForEveryProcessor_Spins) {
  EXPECT_GT(Barrier(usable_processors()).spins(), 0);
}

TEST(Barrier, ProcessBoundToOneProcessor_CountsThatOne) {
  const OneProcessor bound;
  EXPECT_EQ(usable_processors(), 1);
  EXPECT_GT(Barrier(1).spins(), 0);
  EXPECT_EQ(Barrier(2).spins(), 0);
}

}  // namespace
}  // namespace kernelpath::kernels::cpu
