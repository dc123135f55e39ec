#include "base/units.h"

#include <gtest/gtest.h>

namespace kernelpath {
namespace {

TEST(ParseBytes, BinaryAndDecimalUnits_AreToldApart) {
  EXPECT_EQ(parse_bytes("512").value(), 512);
  EXPECT_EQ(parse_bytes("64KiB").value(), 65536);
  EXPECT_EQ(parse_bytes("80GiB").value(), 80LL << 30);
  EXPECT_EQ(parse_bytes("80GB").value(), 80'000'000'000);
  EXPECT_EQ(parse_bytes("1.5 gib").value(), 3LL << 29);
}

TEST(ParseBytes, BareLetter_IsRefusedWithBothSpellings) {
  const auto result = parse_bytes("4k");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().hint, "write 4KiB (binary) or 4KB (decimal)");
}

TEST(ParseBytes, Nonsense_IsRefused) {
  for (const char* text :
       {"", "GiB", "-1GiB", "1.5", "1..5GiB", "1e400GiB", "99999999TiB", "5XB"}) {
    EXPECT_FALSE(parse_bytes(text)) << text;
  }
}

TEST(ParseInteger, OnlyWholeNumbersThatFit_AreRead) {
  EXPECT_EQ(parse_integer("-12").value(), -12);
  for (const char* text : {"", "1 ", "0x10", "9223372036854775808", "1e3"}) {
    EXPECT_FALSE(parse_integer(text)) << text;
  }
}

TEST(FormatBytes, RoundNumbers_HaveNoDecimal) {
  EXPECT_EQ(format_bytes(131072), "128 KiB");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(0), "0 B");
}

}  // namespace
}  // namespace kernelpath
