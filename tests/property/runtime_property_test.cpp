#include "runtime/scheduler.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

// Scheduler and block manager against a model whose state behind a token is a hash of that token
// and of the state before, read from the cache: whatever is batched, shared, preempted, proposed or
// cancelled, every sequence becomes what it becomes alone, and gives all its blocks back.
namespace kernelpath::runtime {
namespace {

constexpr std::int32_t kVocabulary = 5;  // small, so that beginnings coincide

// The state behind `token`, where `before` is the state before it.
std::uint32_t state_behind(std::uint32_t before, std::int32_t token) {
  return (before ^ static_cast<std::uint32_t>(token + 1)) * 0x9e3779b1U + 7;
}

std::int32_t token_of(std::uint32_t state) {
  return static_cast<std::int32_t>((state >> 11U) % kVocabulary);
}

// The token behind `tokens`: a function of all of them.
std::int32_t next_token(std::span<const std::int32_t> tokens) {
  std::uint32_t state = 0;
  for (const std::int32_t token : tokens) state = state_behind(state, token);
  return token_of(state);
}

struct Setup {
  std::int64_t page_size = 1;
  std::int64_t num_blocks = 1;
  SchedulerLimits limits;
};

Setup random_setup() {
  Setup out;
  out.page_size = *rc::gen::element<std::int64_t>(1, 2, 3, 4, 16);
  out.num_blocks = *rc::gen::inRange<std::int64_t>(2, 24);
  out.limits.max_sequences = *rc::gen::inRange<std::int64_t>(1, 6);
  out.limits.max_batched_tokens = out.limits.max_sequences + *rc::gen::inRange<std::int64_t>(1, 20);
  out.limits.share_prefixes = *rc::gen::inRange(0, 4) > 0;
  return out;
}

class Simulation {
 public:
  explicit Simulation(const Setup& setup)
      : setup_(setup),
        blocks_(setup.num_blocks, setup.page_size),
        scheduler_(setup.limits, blocks_),
        slots_(static_cast<std::size_t>(setup.num_blocks * setup.page_size)) {}

  void add(std::vector<std::int32_t> prompt, std::int64_t generated) {
    auto sequence = std::make_unique<Sequence>();
    sequence->id = next_id_++;
    sequence->prompt_tokens = static_cast<std::int64_t>(prompt.size());
    sequence->tokens = std::move(prompt);
    sequence->max_tokens = sequence->prompt_tokens + generated;
    const bool fits = sequence->max_tokens <= blocks_.capacity();
    RC_ASSERT(scheduler_.add(*sequence).has_value() == fits);
    if (fits) sequences_.push_back(std::move(sequence));
  }

  // False when there was nothing to do.
  bool step() {
    const std::vector<SequenceRun> runs = scheduler_.next();
    for (const kv::BlockCopy& copy : blocks_.take_copies()) apply(copy);
    std::int64_t tokens = 0;
    for (const SequenceRun& run : runs) {
      write(run);
      tokens += run.count;
    }
    RC_ASSERT(tokens <= setup_.limits.max_batched_tokens);
    RC_ASSERT(scheduler_.running() <= setup_.limits.max_sequences);
    for (const SequenceRun& run : runs) finish(run);
    return !runs.empty();
  }

  void cancel_one() {
    if (sequences_.empty()) return;
    const auto index = *rc::gen::inRange<std::size_t>(0, sequences_.size());
    scheduler_.remove(*sequences_[index]);
    sequences_.erase(sequences_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  void check_empty() const {
    RC_ASSERT(sequences_.empty());
    RC_ASSERT(blocks_.pool().available() == setup_.num_blocks);
  }

 private:
  std::uint32_t& slot(const Sequence& sequence, std::int64_t position) {
    const std::span<const kv::BlockId> table = blocks_.block_table(sequence.id);
    const auto page = static_cast<std::size_t>(position / setup_.page_size);
    RC_ASSERT(page < table.size());
    return slots_[static_cast<std::size_t>(table[page] * setup_.page_size +
                                           position % setup_.page_size)];
  }

  void apply(const kv::BlockCopy& copy) {
    for (std::int64_t i = 0; i < setup_.page_size; ++i) {
      slots_[static_cast<std::size_t>(copy.to * setup_.page_size + i)] =
          slots_[static_cast<std::size_t>(copy.from * setup_.page_size + i)];
    }
  }

  void write(const SequenceRun& run) {
    const Sequence& sequence = *run.sequence;
    for (std::int64_t i = 0; i < run.count; ++i) {
      const std::int64_t position = run.first + i;
      const std::int32_t token =
          position < sequence.known()
              ? sequence.tokens[static_cast<std::size_t>(position)]
              : sequence.drafts[static_cast<std::size_t>(position - sequence.known())];
      const std::uint32_t before = position == 0 ? 0 : slot(sequence, position - 1);
      slot(sequence, position) = state_behind(before, token);
    }
  }

  void finish(const SequenceRun& run) {
    Sequence& sequence = *run.sequence;
    const std::vector<std::int32_t> drafts = sequence.drafts;
    std::int64_t accepted = 0;
    for (std::int64_t i = 0; i < run.logits; ++i) {
      const std::int64_t row = run.first + run.count - run.logits + i;
      const std::int32_t token = token_of(slot(sequence, row));
      sequence.tokens.push_back(token);
      if (i == run.drafts || drafts[static_cast<std::size_t>(i)] != token) break;
      ++accepted;
    }
    scheduler_.executed(run, accepted);
    RC_ASSERT(sequence.known() <= sequence.max_tokens);
    if (sequence.known() < sequence.max_tokens) {
      propose(sequence);
      return;
    }
    for (std::int64_t i = sequence.prompt_tokens; i < sequence.known(); ++i) {
      const auto before = std::span(sequence.tokens).first(static_cast<std::size_t>(i));
      RC_ASSERT(sequence.tokens[static_cast<std::size_t>(i)] == next_token(before));
    }
    scheduler_.remove(sequence);
    std::erase_if(sequences_, [&](const auto& one) { return one.get() == &sequence; });
  }

  // Right ones and wrong ones.
  void propose(Sequence& sequence) {
    std::vector<std::int32_t> tokens = sequence.tokens;
    const auto count = *rc::gen::inRange<std::size_t>(0, 4);
    for (std::size_t i = 0; i < count; ++i) {
      const std::int32_t right = next_token(tokens);
      tokens.push_back(*rc::gen::inRange(0, 3) > 0 ? right : (right + 1) % kVocabulary);
      sequence.drafts.push_back(tokens.back());
    }
  }

  Setup setup_;
  kv::BlockManager blocks_;
  Scheduler scheduler_;
  std::vector<std::uint32_t> slots_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
  kv::SequenceId next_id_ = 0;
};

RC_GTEST_PROP(Scheduling, EverySequence_BecomesWhatItBecomesAlone, ()) {
  Simulation simulation(random_setup());
  const auto arrivals = *rc::gen::inRange(1, 12);
  for (int i = 0; i < arrivals; ++i) {
    auto prompt = *rc::gen::container<std::vector<std::int32_t>>(
        *rc::gen::inRange<std::size_t>(1, 30), rc::gen::inRange<std::int32_t>(0, 2));
    simulation.add(std::move(prompt), *rc::gen::inRange<std::int64_t>(1, 12));
    const auto steps = *rc::gen::inRange(0, 6);
    for (int step = 0; step < steps; ++step) simulation.step();
    if (*rc::gen::inRange(0, 5) == 0) simulation.cancel_one();
  }
  int steps = 0;
  while (simulation.step()) RC_ASSERT(++steps < 10'000);
  simulation.check_empty();
}

}  // namespace
}  // namespace kernelpath::runtime
