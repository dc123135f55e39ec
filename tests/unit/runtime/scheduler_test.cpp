#include "runtime/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelpath::runtime {
namespace {

using ::testing::ElementsAre;

// Pages of one token, so that sizes count tokens.
kv::BlockManager cache_of(std::int64_t tokens) { return {tokens, 1}; }

std::int64_t used(const kv::BlockManager& cache) {
  return cache.pool().num_blocks() - cache.pool().available();
}

Sequence sequence_of(kv::SequenceId id, std::int64_t prompt, std::int64_t generated) {
  Sequence out{.id = id, .prompt_tokens = prompt, .max_tokens = prompt + generated};
  out.tokens.assign(static_cast<std::size_t>(prompt), static_cast<std::int32_t>(id));
  return out;
}

// "ID:FIRST+COUNT" of each run, with "*" where it gets logits.
std::vector<std::string> text_of(const std::vector<SequenceRun>& step) {
  std::vector<std::string> out;
  for (const SequenceRun& run : step) {
    out.push_back(std::to_string(run.sequence->id) + ":" + std::to_string(run.first) + "+" +
                  std::to_string(run.count) + (run.logits > 0 ? "*" : ""));
  }
  return out;
}

// What a decode loop does with a step: a token more for each run that got logits; sequences that
// are long enough leave.
std::vector<std::string> execute(Scheduler& scheduler) {
  const std::vector<SequenceRun> step = scheduler.next();
  for (const SequenceRun& run : step) {
    if (run.logits > 0) run.sequence->tokens.push_back(0);
    scheduler.executed(run, 0);
    if (run.sequence->known() == run.sequence->max_tokens) scheduler.remove(*run.sequence);
  }
  return text_of(step);
}

TEST(Scheduler, Prompt_ComesInChunksAndThenDecodes) {
  kv::BlockManager cache = cache_of(100);
  Scheduler scheduler({.max_batched_tokens = 4, .max_sequences = 2}, cache);
  Sequence a = sequence_of(1, 10, 3);
  ASSERT_TRUE(scheduler.add(a));
  EXPECT_THAT(execute(scheduler), ElementsAre("1:0+4"));
  EXPECT_THAT(execute(scheduler), ElementsAre("1:4+4"));
  EXPECT_THAT(execute(scheduler), ElementsAre("1:8+2*"));
  EXPECT_THAT(execute(scheduler), ElementsAre("1:10+1*"));
  EXPECT_THAT(execute(scheduler), ElementsAre("1:11+1*"));
  EXPECT_THAT(execute(scheduler), ElementsAre());
  EXPECT_EQ(used(cache), 0);
}

TEST(Scheduler, Decoding_GoesBeforePrompts) {
  kv::BlockManager cache = cache_of(100);
  Scheduler scheduler({.max_batched_tokens = 4, .max_sequences = 3}, cache);
  Sequence a = sequence_of(1, 2, 8);
  Sequence b = sequence_of(2, 9, 1);
  ASSERT_TRUE(scheduler.add(a));
  ASSERT_TRUE(scheduler.add(b));
  EXPECT_THAT(execute(scheduler), ElementsAre("1:0+2*", "2:0+2"));
  EXPECT_THAT(execute(scheduler), ElementsAre("1:2+1*", "2:2+3"));
  EXPECT_THAT(execute(scheduler), ElementsAre("1:3+1*", "2:5+3"));
}

TEST(Scheduler, SharedBeginning_IsNotComputedAgain) {
  kv::BlockManager cache = cache_of(100);
  Scheduler scheduler({.max_batched_tokens = 16, .max_sequences = 2}, cache);
  Sequence a = sequence_of(1, 8, 1);
  Sequence b = sequence_of(2, 8, 1);
  b.tokens = a.tokens;
  b.tokens[6] = 99;
  ASSERT_TRUE(scheduler.add(a));
  EXPECT_THAT(execute(scheduler), ElementsAre("1:0+8*"));
  ASSERT_TRUE(scheduler.add(b));
  EXPECT_THAT(execute(scheduler), ElementsAre("2:6+2*"));
  EXPECT_EQ(b.reused, 6);
}

TEST(Scheduler, PrivateCaches_ShareNothing) {
  kv::BlockManager cache = cache_of(100);
  Scheduler scheduler({.max_batched_tokens = 16, .max_sequences = 2, .share_prefixes = false},
                      cache);
  Sequence a = sequence_of(1, 8, 1);
  Sequence b = sequence_of(2, 8, 1);
  b.tokens = a.tokens;
  ASSERT_TRUE(scheduler.add(a));
  EXPECT_THAT(execute(scheduler), ElementsAre("1:0+8*"));
  ASSERT_TRUE(scheduler.add(b));
  EXPECT_THAT(execute(scheduler), ElementsAre("2:0+8*"));
}

TEST(Scheduler, FullCache_QueuesInTheOrderOfArrival) {
  kv::BlockManager cache = cache_of(12);
  Scheduler scheduler({.max_batched_tokens = 32, .max_sequences = 4}, cache);
  Sequence a = sequence_of(1, 8, 2);
  Sequence b = sequence_of(2, 8, 2);
  Sequence c = sequence_of(3, 1, 1);  // would fit, but b was first
  for (Sequence* sequence : {&a, &b, &c}) ASSERT_TRUE(scheduler.add(*sequence));
  EXPECT_THAT(execute(scheduler), ElementsAre("1:0+8*"));
  EXPECT_EQ(scheduler.waiting(), 2);
  EXPECT_THAT(execute(scheduler), ElementsAre("1:8+1*"));
  EXPECT_THAT(execute(scheduler), ElementsAre("2:0+8*", "3:0+1*"));
}

TEST(Scheduler, FullCache_TakesFromTheLatestAndRecomputesIt) {
  kv::BlockManager cache = cache_of(12);
  Scheduler scheduler({.max_batched_tokens = 32, .max_sequences = 4}, cache);
  Sequence a = sequence_of(1, 5, 6);
  Sequence b = sequence_of(2, 5, 3);
  ASSERT_TRUE(scheduler.add(a));
  ASSERT_TRUE(scheduler.add(b));
  EXPECT_THAT(execute(scheduler), ElementsAre("1:0+5*", "2:0+5*"));
  EXPECT_THAT(execute(scheduler), ElementsAre("1:5+1*", "2:5+1*"));
  EXPECT_THAT(execute(scheduler), ElementsAre("1:6+1*"));
  EXPECT_EQ(b.preemptions, 1);
  EXPECT_EQ(b.known(), 7);  // what it had generated is still there
  while (scheduler.running() + scheduler.waiting() > 1) execute(scheduler);
  EXPECT_THAT(execute(scheduler), ElementsAre("2:2+5*"));  // two of its pages were still there
  EXPECT_EQ(b.known(), b.max_tokens);
}

TEST(Scheduler, SequenceThatCannotFitAlone_IsRefused) {
  kv::BlockManager cache = cache_of(12);
  Scheduler scheduler({.max_batched_tokens = 32, .max_sequences = 4}, cache);
  Sequence a = sequence_of(1, 10, 3);
  const Result<void> added = scheduler.add(a);
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code, ErrorCode::kResource);
  Sequence b = sequence_of(2, 10, 2);
  EXPECT_TRUE(scheduler.add(b));
}

TEST(Scheduler, Drafts_GetLogitsAndAreCountedAsAccepted) {
  kv::BlockManager cache = cache_of(100);
  Scheduler scheduler({.max_batched_tokens = 32, .max_sequences = 4}, cache);
  Sequence a = sequence_of(1, 5, 10);
  ASSERT_TRUE(scheduler.add(a));
  execute(scheduler);
  a.drafts = {7, 8, 9};
  const std::vector<SequenceRun> step = scheduler.next();
  ASSERT_EQ(step.size(), 1U);
  EXPECT_EQ(step[0].count, 4);
  EXPECT_EQ(step[0].drafts, 3);
  EXPECT_EQ(step[0].logits, 4);
  a.tokens.insert(a.tokens.end(), {7, 8, 1});  // two accepted, and the token behind them
  scheduler.executed(step[0], 2);
  EXPECT_EQ(a.computed, 8);
  EXPECT_TRUE(a.decodes());
}

TEST(Scheduler, Drafts_NeverPassTheEndNorTakePages) {
  kv::BlockManager cache = cache_of(8);
  Scheduler scheduler({.max_batched_tokens = 32, .max_sequences = 4}, cache);
  Sequence a = sequence_of(1, 5, 3);
  ASSERT_TRUE(scheduler.add(a));
  execute(scheduler);
  a.drafts = {7, 8, 9};
  EXPECT_EQ(scheduler.next()[0].drafts, 1);  // two tokens are left: one draft and the last
}

TEST(Scheduler, Drafts_TakeNobodysRoom) {
  kv::BlockManager cache = cache_of(11);
  Scheduler scheduler({.max_batched_tokens = 32, .max_sequences = 4}, cache);
  Sequence a = sequence_of(1, 4, 4);
  Sequence b = sequence_of(2, 4, 4);
  ASSERT_TRUE(scheduler.add(a));
  ASSERT_TRUE(scheduler.add(b));
  execute(scheduler);
  a.drafts = {1, 2};  // 4 + 1 + 2 beside the 4 + 1 of b
  const std::vector<SequenceRun> step = scheduler.next();
  ASSERT_EQ(step.size(), 2U);
  EXPECT_EQ(step[0].drafts, 0);  // one token is free, two are proposed
  EXPECT_EQ(b.preemptions, 0);
}

TEST(Scheduler, Slots_AreUniqueAmongRunningSequences) {
  kv::BlockManager cache = cache_of(100);
  Scheduler scheduler({.max_batched_tokens = 32, .max_sequences = 3}, cache);
  std::vector<Sequence> sequences;
  for (kv::SequenceId id = 1; id <= 5; ++id) sequences.push_back(sequence_of(id, 1, id));
  for (Sequence& sequence : sequences) ASSERT_TRUE(scheduler.add(sequence));
  while (scheduler.running() + scheduler.waiting() > 0) {
    std::vector<std::int32_t> slots;
    const std::vector<SequenceRun> step = scheduler.next();
    for (const SequenceRun& run : step) slots.push_back(run.sequence->slot);
    for (const std::int32_t slot : slots) {
      EXPECT_GE(slot, 0);
      EXPECT_LT(slot, 3);
      EXPECT_EQ(std::ranges::count(slots, slot), 1);
    }
    for (const SequenceRun& run : step) {
      run.sequence->tokens.push_back(0);
      scheduler.executed(run, 0);
      if (run.sequence->known() == run.sequence->max_tokens) scheduler.remove(*run.sequence);
    }
  }
}

TEST(Scheduler, RemovedSequence_GivesItsRoomBack) {
  kv::BlockManager cache = cache_of(100);
  Scheduler scheduler({.max_batched_tokens = 32, .max_sequences = 1}, cache);
  Sequence a = sequence_of(1, 4, 4);
  Sequence b = sequence_of(2, 4, 4);
  ASSERT_TRUE(scheduler.add(a));
  ASSERT_TRUE(scheduler.add(b));
  execute(scheduler);
  scheduler.remove(a);
  scheduler.remove(b);
  EXPECT_EQ(used(cache), 0);
  EXPECT_THAT(execute(scheduler), ElementsAre());
}

}  // namespace
}  // namespace kernelpath::runtime
