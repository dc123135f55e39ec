#include "runtime/ngram_proposer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelpath::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Tokens = std::vector<std::int32_t>;

TEST(NgramProposer, NothingRepeats_NothingIsProposed) {
  EXPECT_THAT(NgramProposer{}.propose(Tokens{1, 2, 3, 4}, 4), IsEmpty());
  EXPECT_THAT(NgramProposer{}.propose(Tokens{}, 4), IsEmpty());
  EXPECT_THAT(NgramProposer{}.propose(Tokens{1}, 4), IsEmpty());
}

TEST(NgramProposer, Match_GivesWhatFollowed) {
  EXPECT_THAT(NgramProposer{}.propose(Tokens{1, 2, 3, 4, 5, 2, 3}, 2), ElementsAre(4, 5));
}

TEST(NgramProposer, LongerMatch_WinsOverALaterShorterOne) {
  EXPECT_THAT(NgramProposer{}.propose(Tokens{1, 2, 3, 7, 9, 3, 8, 1, 2, 3}, 1), ElementsAre(7));
}

TEST(NgramProposer, LatestOfEqualMatches_Wins) {
  EXPECT_THAT(NgramProposer{}.propose(Tokens{5, 6, 7, 5, 8, 9, 5}, 1), ElementsAre(8));
}

TEST(NgramProposer, EndOfTheSequence_CutsTheProposal) {
  EXPECT_THAT(NgramProposer{}.propose(Tokens{4, 4, 4}, 5), ElementsAre(4));
}

TEST(NgramProposer, ShortestMatch_IsARequirement) {
  const NgramProposer proposer{.shortest = 2, .longest = 3};
  EXPECT_THAT(proposer.propose(Tokens{1, 9, 2, 1}, 1), IsEmpty());
}

}  // namespace
}  // namespace kernelpath::runtime
