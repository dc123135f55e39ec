#include "runtime/scheduler.h"

#include "base/assert.h"

#include <fmt/format.h>

#include <algorithm>

namespace kernelpath::runtime {

Scheduler::Scheduler(const SchedulerLimits& limits, kv::BlockManager& cache)
    : limits_(limits), cache_(cache) {
  // Else sequences that decode could take every step's whole budget from a waiting prompt.
  KERNELPATH_ASSERT(limits.max_batched_tokens > limits.max_sequences);
}

Result<void> Scheduler::add(Sequence& sequence) {
  if (sequence.max_tokens > cache_.capacity()) {
    return fail({.code = ErrorCode::kResource,
                 .message = fmt::format("needs room for {} tokens in the KV cache, which holds {}",
                                        sequence.max_tokens, cache_.capacity()),
                 .hint = "raise --kv-memory, or lower --max-tokens or the prompt"});
  }
  waiting_.push_back(&sequence);
  return {};
}

std::vector<SequenceRun> Scheduler::next() {
  std::vector<SequenceRun> step;
  budget_ = limits_.max_batched_tokens;
  // A copy, since serving one may preempt others.
  const std::vector<Sequence*> running = running_;
  for (const bool decodes : {true, false}) {
    for (Sequence* sequence : running) {
      const bool still_runs = std::ranges::find(running_, sequence) != running_.end();
      if (still_runs && sequence->decodes() == decodes) serve(*sequence, step);
    }
  }
  // Room that was just taken from one sequence is not for a new one.
  if (running_.size() == running.size()) admit(step);
  add_drafts(step);
  return step;
}

void Scheduler::serve(Sequence& sequence, std::vector<SequenceRun>& step) {
  const std::int64_t missing = sequence.known() - sequence.computed;
  const std::int64_t count = std::min(missing, budget_);
  if (count < 1 || !make_room(sequence, sequence.computed + count, step)) return;
  budget_ -= count;
  step.push_back({.sequence = &sequence,
                  .first = sequence.computed,
                  .count = count,
                  .logits = count == missing ? 1 : 0});
}

// Proposals take what is left of the budget and of the cache when everybody else was served.
void Scheduler::add_drafts(std::vector<SequenceRun>& step) {
  for (SequenceRun& run : step) {
    const Sequence& sequence = *run.sequence;
    const auto proposed = static_cast<std::int64_t>(sequence.drafts.size());
    const std::int64_t until_end = sequence.max_tokens - sequence.known() - 1;
    const std::int64_t drafts = std::min({proposed, until_end, budget_});
    if (run.logits == 0 || drafts < 1) continue;
    if (!cache_.extend(sequence.id, run.first + run.count + drafts)) continue;
    budget_ -= drafts;
    run.drafts = drafts;
    run.count += drafts;
    run.logits += drafts;
  }
}

bool Scheduler::make_room(Sequence& sequence, std::int64_t tokens, std::vector<SequenceRun>& step) {
  while (!cache_.extend(sequence.id, tokens)) {
    Sequence& latest = *running_.back();
    preempt(latest, step);
    if (&latest == &sequence) return false;
  }
  return true;
}

void Scheduler::preempt(Sequence& sequence, std::vector<SequenceRun>& step) {
  const auto is_its = [&](const SequenceRun& run) { return run.sequence == &sequence; };
  if (const auto run = std::ranges::find_if(step, is_its); run != step.end()) {
    budget_ += run->count;
    step.erase(run);
  }
  cache_.release(sequence.id);
  sequence.computed = 0;
  sequence.reused = 0;
  sequence.slot = -1;
  sequence.drafts.clear();
  ++sequence.preemptions;
  std::erase(running_, &sequence);
  waiting_.push_front(&sequence);
}

void Scheduler::admit(std::vector<SequenceRun>& step) {
  while (!waiting_.empty() && budget_ > 0 &&
         static_cast<std::int64_t>(running_.size()) < limits_.max_sequences) {
    if (!admit_first(step)) return;
  }
}

bool Scheduler::admit_first(std::vector<SequenceRun>& step) {
  Sequence& sequence = *waiting_.front();
  // All of it and the token that follows: else it would be the next to be preempted.
  if (!cache_.has_room(std::min(sequence.known() + 1, sequence.max_tokens))) return false;
  waiting_.pop_front();
  sequence.slot = free_slot();
  sequence.reused = cache_.begin(sequence.id, sequence.tokens);
  sequence.computed = sequence.reused;
  const auto arrived_later = [&](const Sequence* other) { return other->id > sequence.id; };
  running_.insert(std::ranges::find_if(running_, arrived_later), &sequence);
  const std::size_t before = running_.size();
  serve(sequence, step);
  return running_.size() == before;
}

std::int32_t Scheduler::free_slot() const {
  for (std::int32_t slot = 0;; ++slot) {
    const auto has_it = [&](const Sequence* sequence) { return sequence->slot == slot; };
    if (std::ranges::none_of(running_, has_it)) return slot;
  }
}

void Scheduler::executed(const SequenceRun& run, std::int64_t accepted) {
  Sequence& sequence = *run.sequence;
  sequence.computed = run.first + run.count - run.drafts + accepted;
  sequence.drafts.clear();
  KERNELPATH_ASSERT(sequence.computed <= sequence.known());
  if (!limits_.share_prefixes) {
    cache_.computed_privately(sequence.id, sequence.computed);
    return;
  }
  cache_.computed(sequence.id,
                  std::span(sequence.tokens).first(static_cast<std::size_t>(sequence.computed)));
}

void Scheduler::remove(Sequence& sequence) {
  if (std::erase(running_, &sequence) > 0) {
    cache_.release(sequence.id);
    return;
  }
  std::erase(waiting_, &sequence);
}

}  // namespace kernelpath::runtime
