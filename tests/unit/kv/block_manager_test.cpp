#include "kv/block_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace kernelpath::kv {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Tokens = std::vector<std::int32_t>;

Tokens count_from(std::int32_t first, std::size_t size) {
  Tokens out(size);
  std::iota(out.begin(), out.end(), first);
  return out;
}

// Begins a sequence, makes room for its tokens and states that they are in the cache; what was
// reused.
std::int64_t run(BlockManager& manager, SequenceId id, const Tokens& tokens) {
  const std::int64_t reused = manager.begin(id, tokens);
  EXPECT_TRUE(manager.extend(id, static_cast<std::int64_t>(tokens.size())));
  manager.computed(id, tokens);
  return reused;
}

TEST(BlockManager, Extend_GivesWholePages) {
  BlockManager manager(4, 16);
  EXPECT_EQ(manager.capacity(), 64);
  EXPECT_EQ(manager.begin(1, count_from(0, 17)), 0);
  EXPECT_TRUE(manager.extend(1, 17));
  EXPECT_THAT(manager.block_table(1), ElementsAre(0, 1));
  EXPECT_TRUE(manager.extend(1, 32));
  EXPECT_THAT(manager.block_table(1), ElementsAre(0, 1));
  EXPECT_TRUE(manager.extend(1, 33));
  EXPECT_THAT(manager.block_table(1), ElementsAre(0, 1, 2));
}

TEST(BlockManager, FullCache_ChangesNothing) {
  BlockManager manager(2, 16);
  manager.begin(1, count_from(0, 8));
  EXPECT_TRUE(manager.extend(1, 8));
  EXPECT_FALSE(manager.extend(1, 33));
  EXPECT_THAT(manager.block_table(1), ElementsAre(0));
  EXPECT_FALSE(manager.has_room(17));
  EXPECT_TRUE(manager.has_room(16));
  manager.release(1);
  EXPECT_TRUE(manager.has_room(32));
}

TEST(BlockManager, SameBeginning_SharesFullPages) {
  BlockManager manager(8, 4);
  Tokens first = count_from(0, 10);
  EXPECT_EQ(run(manager, 1, first), 0);
  Tokens second = first;
  second[9] = 99;
  EXPECT_EQ(run(manager, 2, second), 8);
  EXPECT_EQ(manager.block_table(2)[0], manager.block_table(1)[0]);
  EXPECT_EQ(manager.block_table(2)[1], manager.block_table(1)[1]);
  EXPECT_NE(manager.block_table(2)[2], manager.block_table(1)[2]);
  EXPECT_THAT(manager.take_copies(), IsEmpty());
}

TEST(BlockManager, OtherBeginning_SharesNothingBehindIt) {
  BlockManager manager(8, 4);
  run(manager, 1, count_from(0, 8));
  Tokens other = count_from(0, 8);
  other[0] = 7;
  EXPECT_EQ(run(manager, 2, other), 0);
}

TEST(BlockManager, ReleasedPages_AreStillFound) {
  BlockManager manager(8, 4);
  run(manager, 1, count_from(0, 9));
  manager.release(1);
  EXPECT_EQ(manager.pool().available(), 8);
  EXPECT_EQ(run(manager, 2, count_from(0, 9)), 8);
}

TEST(BlockManager, WholePromptInTheCache_LastTokenGoesIntoACopy) {
  BlockManager manager(8, 4);
  run(manager, 1, count_from(0, 8));
  EXPECT_EQ(manager.begin(2, count_from(0, 8)), 7);
  EXPECT_TRUE(manager.extend(2, 8));
  const std::vector<BlockCopy> copies = manager.take_copies();
  ASSERT_THAT(copies, SizeIs(1));
  EXPECT_EQ(copies[0].from, manager.block_table(1)[1]);
  EXPECT_EQ(copies[0].to, manager.block_table(2)[1]);
  EXPECT_EQ(manager.block_table(2)[0], manager.block_table(1)[0]);
  manager.computed(2, count_from(0, 8));
  EXPECT_THAT(manager.take_copies(), IsEmpty());
}

TEST(BlockManager, LargestSequence_FitsAloneAlsoWhenItsBeginningIsShared) {
  BlockManager manager(3, 4);
  run(manager, 1, count_from(0, 8));
  manager.release(1);
  EXPECT_EQ(manager.begin(2, count_from(0, 8)), 7);
  EXPECT_TRUE(manager.extend(2, 8));
  manager.computed(2, count_from(0, 8));
  EXPECT_TRUE(manager.extend(2, 12));
  EXPECT_THAT(manager.block_table(2), SizeIs(3));
}

TEST(BlockManager, Fork_CopiesTheBlockThatIsWrittenNext) {
  BlockManager manager(8, 4);
  run(manager, 1, count_from(0, 6));
  manager.fork(1, 2);
  EXPECT_THAT(manager.block_table(2), ElementsAre(0, 1));
  EXPECT_TRUE(manager.extend(2, 7));
  EXPECT_THAT(manager.block_table(2), ElementsAre(0, 2));
  ASSERT_THAT(manager.take_copies(), SizeIs(1));
  EXPECT_TRUE(manager.extend(1, 7));  // now alone with its block
  EXPECT_THAT(manager.block_table(1), ElementsAre(0, 1));
  EXPECT_THAT(manager.take_copies(), IsEmpty());
}

TEST(BlockManager, PrivateTokens_AreNotShared) {
  BlockManager manager(8, 4);
  manager.begin(1, count_from(0, 8));
  manager.extend(1, 8);
  manager.computed_privately(1, 8);
  EXPECT_EQ(manager.begin(2, count_from(0, 8)), 0);
}

TEST(BlockManager, RejectedProposals_AreWrittenOver) {
  BlockManager manager(8, 4);
  run(manager, 1, count_from(0, 3));
  EXPECT_TRUE(manager.extend(1, 6));  // three proposals, of which none is taken
  manager.computed(1, count_from(0, 4));
  EXPECT_TRUE(manager.extend(1, 6));
  EXPECT_THAT(manager.take_copies(), IsEmpty());
  EXPECT_THAT(manager.block_table(1), SizeIs(2));
}

}  // namespace
}  // namespace kernelpath::kv
