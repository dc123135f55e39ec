#include "base/utf8.h"

#include <gtest/gtest.h>

namespace kernelpath {
namespace {

TEST(Utf8, EveryCodePoint_ComesBack) {
  for (std::uint32_t c = 0; c <= 0x10ffff; ++c) {
    if (c >= 0xd800 && c <= 0xdfff) continue;
    std::string text;
    append_utf8(text, c);
    const CodePoint point = decode_utf8(text);
    ASSERT_EQ(point.value, c);
    ASSERT_EQ(point.length, text.size());
  }
}

TEST(Utf8, IllFormedSequences_HaveNoLength) {
  for (const std::string_view bytes :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xc3", "\xe2\x82", "\xc3("}) {
    EXPECT_EQ(decode_utf8(bytes).length, 0U);
  }
}

}  // namespace
}  // namespace kernelpath
