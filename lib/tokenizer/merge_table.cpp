#include "tokenizer/merge_table.h"

#include "base/assert.h"

#include <bit>
#include <limits>
#include <queue>

namespace kernelpath::tokenizer {
namespace {

std::uint64_t key_of(std::uint32_t left, std::uint32_t right) {
  return (std::uint64_t{left} << 32U) | right;
}

std::uint32_t number(TokenId id) { return static_cast<std::uint32_t>(id); }

constexpr std::uint32_t kNoRank = std::numeric_limits<std::uint32_t>::max();
// Up to here looking at all ranks again after each merge is faster than keeping a heap.
constexpr std::size_t kFewTokens = 24;

// The pairs of few tokens; ranks[i] is that of tokens i and i + 1.
class FewTokens {
 public:
  FewTokens(std::vector<TokenId>& tokens, const MergeTable& merges)
      : tokens_(tokens), merges_(merges), ranks_(tokens.size() - 1), ids_(tokens.size() - 1) {
    for (std::size_t i = 0; i < ranks_.size(); ++i) look_up(i);
  }

  void run() {
    while (!ranks_.empty()) {
      std::size_t best = 0;
      for (std::size_t i = 1; i < ranks_.size(); ++i) {
        if (ranks_[i] < ranks_[best]) best = i;
      }
      if (ranks_[best] == kNoRank) return;
      merge(best);
    }
  }

  [[nodiscard]] std::size_t steps() const { return steps_; }

 private:
  void look_up(std::size_t i) {
    ++steps_;
    const Merge* merge = merges_.find(number(tokens_[i]), number(tokens_[i + 1]));
    ranks_[i] = merge == nullptr ? kNoRank : merge->rank;
    ids_[i] = merge == nullptr ? kNoToken : merge->id;
  }

  void merge(std::size_t i) {
    const auto at = static_cast<std::ptrdiff_t>(i);
    tokens_[i] = ids_[i];
    tokens_.erase(tokens_.begin() + at + 1);
    ranks_.erase(ranks_.begin() + at);
    ids_.erase(ids_.begin() + at);
    if (i > 0) look_up(i - 1);
    if (i < ranks_.size()) look_up(i);
  }

  std::vector<TokenId>& tokens_;
  const MergeTable& merges_;
  std::vector<std::uint32_t> ranks_;
  std::vector<TokenId> ids_;
  std::size_t steps_ = 0;
};

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

// A chain of tokens and a heap of the merges that are possible.
class ManyTokens {
 public:
  ManyTokens(std::vector<TokenId>& tokens, const MergeTable& merges)
      : tokens_(tokens), merges_(merges), previous_(tokens.size()), next_(tokens.size()) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      previous_[i] = i == 0 ? kNone : i - 1;
      next_[i] = i + 1 == tokens.size() ? kNone : i + 1;
    }
    std::vector<Candidate> candidates;
    candidates.reserve(tokens.size());
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      if (const Merge* merge = find(i)) candidates.push_back({merge->rank, merge->id, i});
    }
    queue_ = Queue({}, std::move(candidates));
  }

  void run() {
    while (!queue_.empty()) {
      const Candidate candidate = queue_.top();
      queue_.pop();
      ++steps_;
      // The pair may have gone, or be another one by now.
      const Merge* merge = tokens_[candidate.at] == kNoToken ? nullptr : find(candidate.at);
      if (merge == nullptr || merge->rank != candidate.rank) continue;
      apply(candidate);
    }
    std::erase(tokens_, kNoToken);
  }

  [[nodiscard]] std::size_t steps() const { return steps_; }

 private:
  struct Candidate {
    std::uint32_t rank;
    TokenId id;
    std::size_t at;  // of the left token

    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };
  using Queue = std::priority_queue<Candidate>;

  [[nodiscard]] const Merge* find(std::size_t at) const {
    if (next_[at] == kNone) return nullptr;
    return merges_.find(number(tokens_[at]), number(tokens_[next_[at]]));
  }

  void push(std::size_t at) {
    if (const Merge* merge = find(at)) queue_.push({merge->rank, merge->id, at});
  }

  void apply(const Candidate& candidate) {
    const std::size_t at = candidate.at;
    const std::size_t right = next_[at];
    tokens_[at] = candidate.id;
    tokens_[right] = kNoToken;
    next_[at] = next_[right];
    if (next_[at] != kNone) previous_[next_[at]] = at;
    if (previous_[at] != kNone) push(previous_[at]);
    push(at);
  }

  std::vector<TokenId>& tokens_;
  const MergeTable& merges_;
  std::vector<std::size_t> previous_;
  std::vector<std::size_t> next_;
  Queue queue_;
  std::size_t steps_ = 0;
};

}  // namespace

MergeTable::MergeTable(std::size_t count) : slots_(std::bit_ceil(2 * count + 16)) {}

std::size_t MergeTable::slot_of(std::uint64_t key) const {
  // Fibonacci hashing of the mixed halves; the table is a power of two long.
  const std::uint64_t mixed = (key ^ (key >> 29U)) * 0x9e3779b97f4a7c15ULL;
  std::size_t slot = (mixed >> 20U) & (slots_.size() - 1);
  while (slots_[slot].key != key && slots_[slot].key != kFree) {
    slot = (slot + 1) & (slots_.size() - 1);
  }
  return slot;
}

void MergeTable::set(std::uint32_t left, std::uint32_t right, Merge merge) {
  const std::uint64_t key = key_of(left, right);
  KERNELPATH_ASSERT(key != kFree);
  slots_[slot_of(key)] = {.key = key, .merge = merge};
}

const Merge* MergeTable::find(std::uint32_t left, std::uint32_t right) const {
  const Slot& slot = slots_[slot_of(key_of(left, right))];
  return slot.key == kFree ? nullptr : &slot.merge;
}

std::size_t merge_tokens(std::vector<TokenId>& tokens, const MergeTable& merges) {
  if (tokens.size() < 2) return 0;
  if (tokens.size() <= kFewTokens) {
    FewTokens few(tokens, merges);
    few.run();
    return few.steps();
  }
  ManyTokens many(tokens, merges);
  many.run();
  return many.steps();
}

}  // namespace kernelpath::tokenizer
