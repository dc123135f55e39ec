#include "base/rounding.h"

#include <gtest/gtest.h>

namespace kernelpath {
namespace {

TEST(RoundUp, Multiples_StayWhatTheyAre) {
  EXPECT_EQ(round_up(0, 16), 0);
  EXPECT_EQ(round_up(64, 16), 64);
  EXPECT_EQ(round_up(7, 1), 7);
}

TEST(RoundUp, OtherValues_GoToTheNext) {
  EXPECT_EQ(round_up(1, 16), 16);
  EXPECT_EQ(round_up(65, 16), 80);
  EXPECT_EQ(round_up(1, 4224), 4224);
}

}  // namespace
}  // namespace kernelpath
