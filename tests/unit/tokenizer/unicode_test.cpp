#include "tokenizer/unicode.h"

#include <gtest/gtest.h>

namespace kernelpath::tokenizer {
namespace {

TEST(Normalize, Forms_ComposeAndDecompose) {
  EXPECT_EQ(normalize("e\u0301", NormalForm::kNfc), "é");
  EXPECT_EQ(normalize("é", NormalForm::kNfd), "e\u0301");
  EXPECT_EQ(normalize("ﬁ²", NormalForm::kNfc), "ﬁ²");
  EXPECT_EQ(normalize("ﬁ²", NormalForm::kNfkc), "fi2");
  EXPECT_EQ(normalize("Å", NormalForm::kNfkd), "A\u030a");
  EXPECT_EQ(normalize("가", NormalForm::kNfd), "\u1100\u1161");
  EXPECT_EQ(normalize("\u1100\u1161", NormalForm::kNfc), "가");
}

TEST(Normalize, Marks_AreOrderedByClassAndStable) {
  EXPECT_EQ(normalize("a\u0307\u0323", NormalForm::kNfd), "a\u0323\u0307");
  EXPECT_EQ(normalize("a\u0301\u0300", NormalForm::kNfd), "a\u0301\u0300");
}

TEST(Normalize, NulAndAscii_StayAsTheyAre) {
  const std::string text("a\0b", 3);
  EXPECT_EQ(normalize(text, NormalForm::kNfc), text);
  EXPECT_EQ(normalize(text + "é", NormalForm::kNfc), text + "é");
}

// A bubble sort of the marks would take hours.
TEST(Normalize, ManyMarks_AreSortedInTime) {
  std::string marks = "a";
  for (int i = 0; i < 200'000; ++i) marks += "\u0301\u0323";
  EXPECT_EQ(normalize(marks, NormalForm::kNfd).size(), marks.size());
}

TEST(Lowercase, Characters_OneByOne) {
  EXPECT_EQ(lowercase("ÀΣ É"), "àσ é");
  EXPECT_EQ(lowercase("ΑΣ"), "ασ");  // no final ς
  EXPECT_EQ(lowercase("İ"), "i\u0307");
}

TEST(RepairUtf8, BrokenParts_BecomeOneReplacementEach) {
  EXPECT_EQ(repair_utf8("a\xff\xff", Repair::kEachPart), "a\ufffd\ufffd");
  EXPECT_EQ(repair_utf8("\xe4\xbd!", Repair::kEachPart), "\ufffd!");
  EXPECT_EQ(repair_utf8("\xe4\xbd!", Repair::kEachByte), "\ufffd\ufffd!");
  EXPECT_EQ(repair_utf8("\xf0\x9f\x98", Repair::kEachPart), "\ufffd");
  EXPECT_EQ(repair_utf8("\xed\xa0\x80", Repair::kEachPart), "\ufffd\ufffd\ufffd");
  EXPECT_EQ(repair_utf8("\xc0\x80", Repair::kEachPart), "\ufffd\ufffd");
}

TEST(RepairUtf8, UnfinishedEnd_IsKeptForLater) {
  std::string rest;
  EXPECT_EQ(repair_utf8("a\xf0\x9f", Repair::kEachPart, &rest), "a");
  EXPECT_EQ(rest, "\xf0\x9f");
  EXPECT_EQ(repair_utf8("a\xf0\x28", Repair::kEachPart, &rest), "a\ufffd(");
  EXPECT_EQ(rest, "");
  EXPECT_EQ(repair_utf8("\xed\xa0", Repair::kEachPart, &rest), "\ufffd\ufffd");
  EXPECT_EQ(rest, "");
}

TEST(CharacterClasses, NearMisses_AreInNone) {
  EXPECT_TRUE(is_white_space(0x2003));
  EXPECT_FALSE(is_white_space(0x180e));
  EXPECT_FALSE(is_white_space(0x200b));
  EXPECT_TRUE(is_numeric(0xb2));
  EXPECT_TRUE(is_numeric(0x2163));
  EXPECT_FALSE(is_numeric('a'));
  EXPECT_TRUE(is_punctuation('$'));
  EXPECT_TRUE(is_punctuation(0x3002));
  EXPECT_FALSE(is_punctuation(0x20ac));  // € is a symbol, and not of ASCII
  EXPECT_TRUE(is_word(0x24d0));
  EXPECT_TRUE(is_word(0x301));
  EXPECT_FALSE(is_word(0xb2));
}

}  // namespace
}  // namespace kernelpath::tokenizer
