#include "report/width.h"

#include "report/facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelpath::report {
namespace {

using testing::ElementsAre;

TEST(DisplayWidth, WideAndCombiningCharacters_CountAsShown) {
  EXPECT_EQ(display_width("abc"), 3);
  EXPECT_EQ(display_width("通义千问"), 8);
  EXPECT_EQ(display_width("é"), 1);
  EXPECT_EQ(display_width("e\u0301"), 1);
  EXPECT_EQ(display_width(""), 0);
}

TEST(Wrap, LongText_BreaksAtSpaces) {
  EXPECT_THAT(wrap("one two three", 7), ElementsAre("one two", "three"));
  EXPECT_THAT(wrap("one two", 0), ElementsAre("one two"));
  EXPECT_THAT(wrap("abcdefghij k", 4), ElementsAre("abcdefghij", "k"));
  EXPECT_THAT(wrap("通义 千问", 5), ElementsAre("通义", "千问"));
}

TEST(LayerRanges, Runs_AreJoined) {
  EXPECT_EQ(layer_ranges({}), "");
  EXPECT_EQ(layer_ranges({3}), "3");
  EXPECT_EQ(layer_ranges({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
}

}  // namespace
}  // namespace kernelpath::report
