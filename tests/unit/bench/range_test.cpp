#include "bench/range.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelpath::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::int64_t> values(std::string_view text) {
  const Result<std::vector<std::int64_t>> out = parse_range(text, "--batch-size");
  EXPECT_TRUE(out) << out.error().text();
  return out ? *out : std::vector<std::int64_t>();
}

TEST(ParseRange, Factor_GrowsToTheLastValueThatFits) {
  EXPECT_THAT(values("1..64*2"), ElementsAre(1, 2, 4, 8, 16, 32, 64));
  EXPECT_THAT(values("1..100*10"), ElementsAre(1, 10, 100));
  EXPECT_THAT(values("3..20*2"), ElementsAre(3, 6, 12));
}

TEST(ParseRange, Step_GrowsToTheLastValueThatFits) {
  EXPECT_THAT(values("1..8+1"), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(values("2..9+3"), ElementsAre(2, 5, 8));
  EXPECT_THAT(values("5..5+1"), ElementsAre(5));
}

TEST(ParseRange, OneNumber_IsItself) { EXPECT_THAT(values("131072"), ElementsAre(131072)); }

TEST(ParseRange, HugeValues_EndWhereTheNextWouldNotFit64Bits) {
  EXPECT_THAT(values("4611686018427387904..9223372036854775807*2"),
              ElementsAre(4611686018427387904));
  EXPECT_THAT(values("9223372036854775806..9223372036854775807+5"),
              ElementsAre(9223372036854775806));
}

class BadRange : public ::testing::TestWithParam<std::string> {};

TEST_P(BadRange, IsRefusedWithTheGrammar) {
  const auto out = parse_range(GetParam(), "--context");
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().code, ErrorCode::kUsage);
  EXPECT_EQ(out.error().where, "--context");
  EXPECT_THAT(out.error().hint, HasSubstr("1..64*2"));
}

INSTANTIATE_TEST_SUITE_P(ParseRange, BadRange,
                         ::testing::Values("", "0", "-1", "1.5", "x", "1..8", "1..8*1", "1..8*0",
                                           "1..8+0", "8..1+1", "..8+1", "1..+1", "1..8*", "0..8+1",
                                           "1..8*2*2", "1...8+1", "99999999999999999999",
                                           "1..5000+1"));

TEST(ParseRanges, List_IsOneAfterTheOther) {
  const auto out = parse_ranges({"1..4*2", "7"}, "--batch-size");
  ASSERT_TRUE(out);
  EXPECT_THAT(*out, ElementsAre(1, 2, 4, 7));
}

TEST(ParseRanges, TooManyTogether_AreRefused) {
  EXPECT_FALSE(parse_ranges({"1..3000+1", "1..3000+1"}, "--batch-size"));
  EXPECT_TRUE(parse_ranges({"1..3000+1", "1..1000+1"}, "--batch-size"));
}

}  // namespace
}  // namespace kernelpath::bench
