#include "engines/setting_value.h"

#include <gtest/gtest.h>

namespace kernelpath::engines {
namespace {

TEST(IsNone, NothingNoneAndNull_InAnyCase) {
  for (const char* const text : {"", "None", "NULL"}) EXPECT_TRUE(is_none(text)) << text;
  for (const char* const text : {"0", "false", "nones", " "}) EXPECT_FALSE(is_none(text)) << text;
}

TEST(ParseNumber, TextBehindANumber_IsNoNumber) {
  EXPECT_EQ(parse_number("0.25"), 0.25);
  EXPECT_EQ(parse_number("1e-3"), 1e-3);
  for (const char* const text : {"", "0.25x", " 1", "1 ", "half"}) {
    EXPECT_FALSE(parse_number(text)) << text;
  }
}

TEST(Normalised, Flags_BecomeTrueAndFalse) {
  for (const char* const text : {"true", "TRUE", "1"}) {
    EXPECT_EQ(normalised(SettingType::kBool, text), "true") << text;
  }
  for (const char* const text : {"false", "False", "0"}) {
    EXPECT_EQ(normalised(SettingType::kBool, text), "false") << text;
  }
  for (const char* const text : {"yes", "2", "on"}) {
    EXPECT_FALSE(normalised(SettingType::kBool, text)) << text;
  }
}

TEST(Normalised, OtherTypes_KeepTheirSpellingOrDoNotFit) {
  EXPECT_EQ(normalised(SettingType::kInteger, "007"), "007");
  EXPECT_FALSE(normalised(SettingType::kInteger, "7.0"));
  EXPECT_EQ(normalised(SettingType::kNumber, "7.0"), "7.0");
  EXPECT_FALSE(normalised(SettingType::kNumber, "seven"));
  EXPECT_EQ(normalised(SettingType::kText, "Seven"), "Seven");
}

TEST(TorchDtypeName, SharedNames_AreSpelledOutAndOthersPass) {
  EXPECT_EQ(torch_dtype_name("BF16"), "bfloat16");
  EXPECT_EQ(torch_dtype_name("f16"), "float16");
  EXPECT_EQ(torch_dtype_name("fp16"), "float16");
  EXPECT_EQ(torch_dtype_name("fp32"), "float32");
  EXPECT_EQ(torch_dtype_name("FP8_e4m3"), "fp8_e4m3");
}

}  // namespace
}  // namespace kernelpath::engines
