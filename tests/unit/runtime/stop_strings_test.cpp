#include "runtime/stop_strings.h"

#include <gtest/gtest.h>

namespace kernelpath::runtime {
namespace {

TEST(StopStrings, NoStrings_GiveEverythingAtOnce) {
  StopStrings stop({});
  EXPECT_EQ(stop.push("abc"), "abc");
  EXPECT_EQ(stop.finish(), "");
}

TEST(StopStrings, StringInOnePiece_EndsTheText) {
  StopStrings stop({"END"});
  EXPECT_EQ(stop.push("one END two"), "one ");
  EXPECT_EQ(stop.found(), "END");
  EXPECT_EQ(stop.push("more"), "");
  EXPECT_EQ(stop.finish(), "");
}

TEST(StopStrings, BeginningOfAString_IsHeldBack) {
  StopStrings stop({"END"});
  EXPECT_EQ(stop.push("aE"), "a");
  EXPECT_EQ(stop.push("N"), "");
  EXPECT_EQ(stop.push("x"), "ENx");
  EXPECT_FALSE(stop.found());
}

TEST(StopStrings, StringOverThreePieces_IsFound) {
  StopStrings stop({"</s>"});
  EXPECT_EQ(stop.push("hi<"), "hi");
  EXPECT_EQ(stop.push("/"), "");
  EXPECT_EQ(stop.push("s>rest"), "");
  EXPECT_EQ(stop.found(), "</s>");
}

TEST(StopStrings, HeldText_ComesAtTheEnd) {
  StopStrings stop({"END"});
  EXPECT_EQ(stop.push("abcEN"), "abc");
  EXPECT_EQ(stop.finish(), "EN");
}

TEST(StopStrings, EarliestOfSeveral_Wins) {
  StopStrings stop({"later", "first"});
  EXPECT_EQ(stop.push("a first then later"), "a ");
  EXPECT_EQ(stop.found(), "first");
}

TEST(StopStrings, RepeatingBeginning_IsNotLost) {
  StopStrings stop({"aab"});
  EXPECT_EQ(stop.push("aa"), "");
  EXPECT_EQ(stop.push("a"), "a");
  EXPECT_EQ(stop.push("b"), "");
  EXPECT_EQ(stop.found(), "aab");
}

TEST(StopStrings, EmptyString_StopsNothing) {
  StopStrings stop({""});
  EXPECT_EQ(stop.push("abc"), "abc");
  EXPECT_FALSE(stop.found());
}

}  // namespace
}  // namespace kernelpath::runtime
