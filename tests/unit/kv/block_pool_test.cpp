#include "kv/block_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelpath::kv {
namespace {

using Tokens = std::vector<std::int32_t>;

TEST(BlockPool, Allocate_GivesEachBlockOnce) {
  BlockPool pool(3);
  EXPECT_EQ(pool.allocate(), 0);
  EXPECT_EQ(pool.allocate(), 1);
  EXPECT_EQ(pool.allocate(), 2);
  EXPECT_EQ(pool.allocate(), std::nullopt);
  pool.release(1);
  EXPECT_EQ(pool.allocate(), 1);
}

TEST(BlockPool, UnpublishedBlock_IsForgottenWithItsLastUser) {
  BlockPool pool(1);
  const BlockId block = pool.allocate().value();
  pool.acquire(block);
  pool.release(block);
  EXPECT_EQ(pool.available(), 0);
  pool.release(block);
  EXPECT_EQ(pool.available(), 1);
  EXPECT_EQ(pool.find(std::nullopt, Tokens{1, 2}), std::nullopt);
}

TEST(BlockPool, PublishedBlock_IsFoundByItsWholeChain) {
  BlockPool pool(4);
  const BlockId first = pool.allocate().value();
  const BlockId second = pool.allocate().value();
  pool.publish(first, std::nullopt, Tokens{1, 2});
  pool.publish(second, first, Tokens{3, 4});
  EXPECT_EQ(pool.find(std::nullopt, Tokens{1, 2}), first);
  EXPECT_EQ(pool.find(first, Tokens{3, 4}), second);
  EXPECT_EQ(pool.find(std::nullopt, Tokens{3, 4}), std::nullopt);  // other tokens are before it
  EXPECT_EQ(pool.find(first, Tokens{3, 5}), std::nullopt);
}

TEST(BlockPool, IdleBlocks_AreEvictedInTheOrderInWhichTheyWereGivenBack) {
  BlockPool pool(2);
  const BlockId a = pool.allocate().value();
  const BlockId b = pool.allocate().value();
  pool.publish(a, std::nullopt, Tokens{1});
  pool.publish(b, std::nullopt, Tokens{2});
  pool.release(b);
  pool.release(a);
  EXPECT_EQ(pool.available(), 2);
  EXPECT_EQ(pool.allocate(), b);
  EXPECT_EQ(pool.find(std::nullopt, Tokens{2}), std::nullopt);
  EXPECT_EQ(pool.find(std::nullopt, Tokens{1}), a);
}

TEST(BlockPool, BlockInUse_IsNeverEvicted) {
  BlockPool pool(2);
  const BlockId a = pool.allocate().value();
  pool.publish(a, std::nullopt, Tokens{1});
  pool.release(a);
  pool.acquire(a);
  EXPECT_NE(pool.allocate(), a);
  EXPECT_EQ(pool.allocate(), std::nullopt);
}

TEST(BlockPool, FreeBlocks_GoBeforeIdleOnes) {
  BlockPool pool(3);
  const BlockId a = pool.allocate().value();
  pool.publish(a, std::nullopt, Tokens{1});
  pool.release(a);
  EXPECT_NE(pool.allocate(), a);
  EXPECT_NE(pool.allocate(), a);
  EXPECT_EQ(pool.allocate(), a);
}

TEST(BlockPool, SecondBlockWithTheSameText_ContinuesTheFirstOnesChain) {
  BlockPool pool(4);
  const BlockId a = pool.allocate().value();
  const BlockId b = pool.allocate().value();
  const BlockId next = pool.allocate().value();
  pool.publish(a, std::nullopt, Tokens{1});
  pool.publish(next, a, Tokens{9});
  pool.publish(b, std::nullopt, Tokens{1});
  EXPECT_EQ(pool.find(b, Tokens{9}), next);
  pool.release(a);
  EXPECT_EQ(pool.allocate(), 3);
  EXPECT_EQ(pool.allocate(), a);  // evicted; the text is still known through b
  EXPECT_EQ(pool.find(std::nullopt, Tokens{1}), b);
  EXPECT_EQ(pool.find(b, Tokens{9}), next);
}

TEST(BlockPool, ChainBehindAnEvictedBlock_IsNotFound) {
  BlockPool pool(2);
  const BlockId a = pool.allocate().value();
  const BlockId next = pool.allocate().value();
  pool.publish(a, std::nullopt, Tokens{1});
  pool.publish(next, a, Tokens{2});
  pool.release(a);
  ASSERT_EQ(pool.allocate(), a);
  EXPECT_EQ(pool.find(a, Tokens{2}), std::nullopt);
  pool.publish(a, std::nullopt, Tokens{7});
  EXPECT_EQ(pool.find(a, Tokens{2}), std::nullopt);  // same block, other text
}

}  // namespace
}  // namespace kernelpath::kv
