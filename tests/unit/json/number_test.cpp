#include "json/number.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kernelpath::json {
namespace {

TEST(ParseNumber, Integers_AreExact) {
  EXPECT_EQ(parse_number("0")->integer, 0);
  EXPECT_EQ(parse_number("-7")->integer, -7);
  EXPECT_EQ(parse_number("-0")->type, Type::kInteger);
  EXPECT_EQ(parse_number("9223372036854775808")->type, Type::kBigInteger);
  EXPECT_EQ(parse_number("9223372036854775808")->real, 9223372036854775808.0);
}

TEST(ParseNumber, FractionOrExponent_IsADouble) {
  EXPECT_EQ(parse_number("1e3")->type, Type::kDouble);
  EXPECT_EQ(parse_number("1e3")->real, 1000.0);
  EXPECT_EQ(parse_number("32.0")->real, 32.0);
  EXPECT_EQ(parse_number("1E+2")->real, 100.0);
  EXPECT_EQ(parse_number("1e-05")->real, 1e-05);
  EXPECT_EQ(parse_number("5e-324")->real, 5e-324);
}

TEST(ParseNumber, OutOfRange_IsInfiniteOrZero) {
  EXPECT_EQ(parse_number("1e400")->real, INFINITY);
  EXPECT_EQ(parse_number("-1e400")->real, -INFINITY);
  EXPECT_EQ(parse_number("1e-400")->real, 0.0);
  EXPECT_EQ(parse_number("0.0e99999999999999999999")->real, 0.0);
  EXPECT_EQ(parse_number("1e99999999999999999999")->real, INFINITY);
  EXPECT_EQ(parse_number("1e-99999999999999999999")->real, 0.0);
  EXPECT_EQ(parse_number(std::string(400, '9'))->real, INFINITY);
  EXPECT_EQ(parse_number("0." + std::string(400, '0') + "1")->real, 0.0);
  EXPECT_EQ(parse_number("0." + std::string(400, '0') + "1e500")->real, 1e99);
  EXPECT_EQ(parse_number("1" + std::string(400, '0') + "e-400")->real, 1.0);
}

TEST(ParseNumber, OtherText_IsNone) {
  for (const char* text : {"", "-", "+1", "01", "-01", "1.", ".5", "1e", "1e+", "0x1", "1 ", " 1",
                           "nan", "inf", "1.2.3", "1e5.0", "--1", "1f"}) {
    EXPECT_FALSE(parse_number(text)) << text;
  }
}

TEST(FormatDouble, Shortest_ReadsBackTheSame) {
  EXPECT_EQ(format_double(1.0), "1.0");
  EXPECT_EQ(format_double(0.1), "0.1");
  EXPECT_EQ(format_double(1e30), "1e+30");
  EXPECT_EQ(format_double(1e-5), "1e-05");
  EXPECT_EQ(format_double(500000.0), "500000.0");
  EXPECT_EQ(format_double(-0.0), "-0.0");
  EXPECT_EQ(format_double(INFINITY), "Infinity");
  EXPECT_EQ(format_double(NAN), "NaN");
}

TEST(IntegerEqualsDouble, LongIntegers_AreComparedExactly) {
  EXPECT_TRUE(integer_equals_double("1000000000000000019884624838656", 1e30));
  EXPECT_FALSE(integer_equals_double("1000000000000000000000000000000", 1e30));
  EXPECT_TRUE(integer_equals_double("9007199254740992", 9007199254740992.0));
  EXPECT_FALSE(integer_equals_double("9007199254740993", 9007199254740992.0));
  EXPECT_FALSE(integer_equals_double("1", 1.5));
  EXPECT_FALSE(integer_equals_double("1", INFINITY));
}

}  // namespace
}  // namespace kernelpath::json
