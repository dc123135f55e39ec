#include "comm/agree.h"
#include "comm/communicator.h"
#include "comm/placement.h"
#include "comm/world.h"
#include "thread_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <mutex>

namespace kernelpath::comm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::run_ranks;

TEST(AllReduce, OneRank_ChangesNothing) {
  const auto one = make_single_rank();
  std::array<float, 2> values{1.0F, -2.5F};
  ASSERT_TRUE(one->all_reduce_sum(values));
  EXPECT_THAT(values, ElementsAre(1.0F, -2.5F));
}

// 2^24 + 1 is not a float: the order of a sum shows in its bits.
TEST(AllReduce, SumsInTheOrderOfTheRanks_OnEveryRank) {
  constexpr float kLarge = 16777216.0F;
  const std::array<float, 4> parts{kLarge, 1.0F, 1.0F, -kLarge};
  float expected = 0.0F;
  for (const float part : parts) expected += part;
  ASSERT_EQ(expected, 0.0F);  // in any order that adds the ones first it is 2
  std::array<float, 4> sums{};
  run_ranks(4, [&](Communicator& ranks) {
    const auto rank = static_cast<std::size_t>(ranks.rank());
    std::array<float, 1> value{parts[rank]};
    EXPECT_TRUE(ranks.all_reduce_sum(value));
    sums[rank] = value[0];
  });
  EXPECT_THAT(sums, ElementsAre(0.0F, 0.0F, 0.0F, 0.0F));
}

TEST(AllReduce, LongerThanAPiece_SumsAllOfIt) {
  constexpr std::size_t kCount = (std::size_t{1} << 16) * 2 + 3;
  run_ranks(3, [&](Communicator& ranks) {
    std::vector<float> values(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      values[i] = static_cast<float>(i % 100) * static_cast<float>(ranks.rank() + 1);
    }
    EXPECT_TRUE(ranks.all_reduce_sum(values));
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < kCount; ++i) {
      if (values[i] != static_cast<float>(i % 100) * 6.0F) ++wrong;
    }
    EXPECT_EQ(wrong, 0U);
  });
}

TEST(Agree, AllWell_IsSuccess) {
  run_ranks(3, [](Communicator& ranks) { EXPECT_TRUE(agree(ranks, {})); });
}

TEST(Agree, OneFails_AllGetItsErrorWithItsRank) {
  run_ranks(3, [](Communicator& ranks) {
    Result<void> own;
    if (ranks.rank() == 1) {
      own = fail({.code = ErrorCode::kResource,
                  .message = "no memory",
                  .file = "a.safetensors",
                  .where = "here",
                  .value = "12",
                  .hint = "get some",
                  .near_matches = {"x", "y"}});
    }
    const Result<void> all = agree(ranks, own);
    ASSERT_FALSE(all);
    EXPECT_EQ(all.error().code, ErrorCode::kResource);
    EXPECT_EQ(all.error().message, "rank 1: no memory");
    EXPECT_EQ(all.error().file, "a.safetensors");
    EXPECT_EQ(all.error().where, "here");
    EXPECT_EQ(all.error().value, "12");
    EXPECT_EQ(all.error().hint, "get some");
    EXPECT_THAT(all.error().near_matches, ElementsAre("x", "y"));
  });
}

TEST(Agree, AllFail_IsTheErrorOfTheFirst) {
  run_ranks(2, [](Communicator& ranks) {
    const Result<void> own = fail(
        {.code = ranks.rank() == 0 ? ErrorCode::kUsage : ErrorCode::kRuntime, .message = "wrong"});
    const Result<void> all = agree(ranks, own);
    ASSERT_FALSE(all);
    EXPECT_EQ(all.error().code, ErrorCode::kUsage);
    EXPECT_EQ(all.error().message, "wrong");
  });
}

TEST(BroadcastText, OtherRanks_HaveTheTextOfTheRoot) {
  run_ranks(3, [](Communicator& ranks) {
    std::string text = ranks.rank() == 0 ? "a longer text" : "b";
    EXPECT_TRUE(broadcast_text(ranks, text));
    EXPECT_EQ(text, "a longer text");
  });
}

TEST(RankGrid, FourRanks_GroupsAreRowsAndColumns) {
  std::mutex mutex;
  std::array<Placement, 4> places;
  run_ranks(4, [&](Communicator& world) {
    auto grid = RankGrid::make(world, 2, 2);
    ASSERT_TRUE(grid);
    const Placement& place = grid->placement();
    EXPECT_EQ(place.tensor->size(), 2);
    EXPECT_EQ(place.context->size(), 2);
    EXPECT_EQ(place.tensor->rank(), place.tp_rank);
    EXPECT_EQ(place.context->rank(), place.dcp_rank);
    std::array<int, 1> own{world.rank()};
    std::array<int, 2> row{};
    std::array<int, 2> column{};
    EXPECT_TRUE(place.tensor->all_gather_values<int>(own, row));
    EXPECT_TRUE(place.context->all_gather_values<int>(own, column));
    const int rank = world.rank();
    EXPECT_THAT(row, ElementsAre(rank / 2 * 2, rank / 2 * 2 + 1));
    EXPECT_THAT(column, ElementsAre(rank % 2, rank % 2 + 2));
    const std::lock_guard lock(mutex);
    places[static_cast<std::size_t>(rank)] = place;
  });
  EXPECT_EQ(places[3].tp_rank, 1);
  EXPECT_EQ(places[3].dcp_rank, 1);
  EXPECT_EQ(places[1].tp_rank, 1);
  EXPECT_EQ(places[1].dcp_rank, 0);
}

TEST(RankGrid, OtherNumberOfRanks_NamesBoth) {
  run_ranks(3, [](Communicator& world) {
    const auto grid = RankGrid::make(world, 2, 1);
    ASSERT_FALSE(grid);
    EXPECT_EQ(grid.error().code, ErrorCode::kUsageConflict);
    EXPECT_THAT(grid.error().message, HasSubstr("takes 2 ranks; started were 3"));
    EXPECT_THAT(grid.error().hint, HasSubstr("mpirun -np 2"));
  });
}

TEST(LaunchOf, VariablesOfALauncher_AreRead) {
  using Environment = std::vector<std::pair<std::string, std::string>>;
  const Launch open_mpi =
      launch_of(Environment{{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}});
  EXPECT_EQ(open_mpi.rank, 1);
  EXPECT_EQ(open_mpi.size, 4);
  EXPECT_EQ(launch_of(Environment{{"PMI_RANK", "2"}, {"PMI_SIZE", "3"}}).rank, 2);
  EXPECT_EQ(launch_of(Environment{{"PATH", "/bin"}}).size, 1);
  // What contradicts itself says nothing.
  EXPECT_EQ(launch_of(Environment{{"PMI_RANK", "3"}, {"PMI_SIZE", "3"}}).rank, 0);
  EXPECT_EQ(launch_of(Environment{{"PMI_RANK", "x"}, {"PMI_SIZE", "3"}}).size, 1);
}

}  // namespace
}  // namespace kernelpath::comm
