#pragma once

#include "base/result.h"
#include "kv/block_manager.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace kernelpath::runtime {

struct SchedulerLimits {
  std::int64_t max_batched_tokens = 512;  // of one step; more than max_sequences
  std::int64_t max_sequences = 16;        // that run at one time
  // Off where what is in the cache belongs to one sequence only: a recurrent state, rotary factors
  // that depend on the length of the prompt.
  bool share_prefixes = true;
};

// One sequence on its way: the tokens that are known and how many of them the cache holds.
struct Sequence {
  kv::SequenceId id = 0;
  std::vector<std::int32_t> tokens = {};  // prompt, then what was generated
  std::int64_t prompt_tokens = 0;
  std::int64_t max_tokens = 0;            // of tokens.size(), prompt included
  std::uint64_t salt = 0;                 // see SequenceCache::begin
  std::vector<std::int32_t> drafts = {};  // proposed tokens to be verified by the next step

  std::int64_t computed = 0;     // tokens in the cache
  std::int64_t reused = 0;       // of them, found there at the latest start
  std::int64_t preemptions = 0;  // how often its pages were taken away
  std::int32_t slot = -1;        // from 0 to max_sequences - 1 while it runs: of a recurrent state

  [[nodiscard]] std::int64_t known() const { return static_cast<std::int64_t>(tokens.size()); }
  // Only its newest token (and drafts) is missing from the cache.
  [[nodiscard]] bool decodes() const { return known() - computed == 1; }
};

// What one sequence does in a step: tokens [first, first + count) enter the cache, the last
// `drafts` of them proposals. `logits` rows at the end get logits: none while a prompt's chunks are
// still coming, else one for each draft and one more.
struct SequenceRun {
  Sequence* sequence = nullptr;
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t drafts = 0;
  std::int64_t logits = 0;
};

// Continuous batching. Sequences are admitted in the order of their arrival and never overtaken;
// each step serves sequences that decode first, then chunks of prompts with what is left of the
// budget. Where the cache is full, the latest arrival gives its pages back and is recomputed later;
// nothing that it has generated is lost.
class Scheduler {
 public:
  Scheduler(const SchedulerLimits& limits, kv::BlockManager& cache);

  // Queues a sequence, whose id must be larger than those before. It must outlive its time here.
  // Errors: kResource, where the cache could not
  // hold it even alone.
  Result<void> add(Sequence& sequence);

  // The next step; empty if nothing is left to do. Drafts are cut to what the step has room for.
  [[nodiscard]] std::vector<SequenceRun> next();

  // `run` was executed: its tokens that are no drafts, and the first `accepted` drafts, are in the
  // cache. The caller has appended accepted drafts and the new token to Sequence::tokens before.
  void executed(const SequenceRun& run, std::int64_t accepted);

  // Takes a sequence out, finished or not.
  void remove(Sequence& sequence);

  [[nodiscard]] std::int64_t waiting() const { return static_cast<std::int64_t>(waiting_.size()); }
  [[nodiscard]] std::int64_t running() const { return static_cast<std::int64_t>(running_.size()); }

 private:
  // Adds a run of `sequence` to the step, if the budget and the cache (after preemptions) let it.
  void serve(Sequence& sequence, std::vector<SequenceRun>& step);
  void add_drafts(std::vector<SequenceRun>& step);
  bool make_room(Sequence& sequence, std::int64_t tokens, std::vector<SequenceRun>& step);
  void preempt(Sequence& sequence, std::vector<SequenceRun>& step);
  void admit(std::vector<SequenceRun>& step);
  bool admit_first(std::vector<SequenceRun>& step);
  [[nodiscard]] std::int32_t free_slot() const;

  SchedulerLimits limits_;
  kv::BlockManager& cache_;
  std::int64_t budget_ = 0;
  std::deque<Sequence*> waiting_;   // in the order of arrival; preempted ones in front
  std::vector<Sequence*> running_;  // in the order of arrival
};

}  // namespace kernelpath::runtime
