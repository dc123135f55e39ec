#include "thread_ranks.h"

#include <algorithm>
#include <barrier>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace kernelpath::testing {
namespace {

// What the ranks of one group share.
struct Group {
  explicit Group(int size) : meeting(size), parts(static_cast<std::size_t>(size)) {}
  std::barrier<> meeting;
  std::vector<std::span<const std::byte>> parts;
  std::mutex mutex;
  std::map<int, std::vector<int>> members;             // of a split, by color
  std::map<int, std::shared_ptr<Group>> split_groups;  // by color
};

class ThreadRank final : public comm::Communicator {
 public:
  ThreadRank(std::shared_ptr<Group> group, int rank, int size)
      : group_(std::move(group)), rank_(rank), size_(size) {}

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }

  Result<void> all_gather(std::span<const std::byte> in, std::span<std::byte> out) override {
    group_->parts[static_cast<std::size_t>(rank_)] = in;
    group_->meeting.arrive_and_wait();
    auto to = out.begin();
    for (const auto& part : group_->parts) to = std::copy(part.begin(), part.end(), to);
    group_->meeting.arrive_and_wait();
    return {};
  }

  Result<void> broadcast(std::span<std::byte> data, int root) override {
    group_->parts[static_cast<std::size_t>(rank_)] = data;
    group_->meeting.arrive_and_wait();
    const auto& from = group_->parts[static_cast<std::size_t>(root)];
    if (rank_ != root) std::copy(from.begin(), from.end(), data.begin());
    group_->meeting.arrive_and_wait();
    return {};
  }

  Result<void> barrier() override {
    group_->meeting.arrive_and_wait();
    return {};
  }

  Result<std::unique_ptr<comm::Communicator>> split(int color) override {
    {
      const std::lock_guard lock(group_->mutex);
      group_->members[color].push_back(rank_);
    }
    group_->meeting.arrive_and_wait();
    std::vector<int> members;
    std::shared_ptr<Group> part;
    {
      const std::lock_guard lock(group_->mutex);
      members = group_->members[color];
      auto& made = group_->split_groups[color];
      if (!made) made = std::make_shared<Group>(static_cast<int>(members.size()));
      part = made;
    }
    group_->meeting.arrive_and_wait();
    if (rank_ == 0) {
      group_->members.clear();
      group_->split_groups.clear();
    }
    group_->meeting.arrive_and_wait();
    std::ranges::sort(members);
    const auto place = std::ranges::find(members, rank_) - members.begin();
    return std::make_unique<ThreadRank>(std::move(part), static_cast<int>(place),
                                        static_cast<int>(members.size()));
  }

 private:
  std::shared_ptr<Group> group_;
  int rank_;
  int size_;
};

}  // namespace

void run_ranks(int size, const std::function<void(comm::Communicator&)>& body) {
  const auto group = std::make_shared<Group>(size);
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadRank own(group, rank, size);
      body(own);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace kernelpath::testing
