// A file that was cut off anywhere is never read as a smaller one.
#include "parse_helpers.h"

#include <fstream>
#include <iterator>

namespace kernelpath::json {
namespace {

void expect_every_cut_refused(const std::string& text) {
  for (std::size_t length = 1; length < text.size(); ++length) {
    const auto document = parse(text.substr(0, length), "config.json");
    ASSERT_FALSE(document) << "accepted " << length << " of " << text.size() << " bytes";
    ASSERT_EQ(document.error().code, ErrorCode::kInputJson) << document.error().text();
    if (text.find_first_not_of(" \t\r\n") >= length) continue;
    ASSERT_THAT(document.error().message,
                testing::HasSubstr("unexpected end at byte " + std::to_string(length)))
        << text.substr(0, length);
  }
}

TEST(Parse, RealConfigCutAtEveryByte_IsRefused) {
  std::ifstream stream(std::string(KERNELPATH_TEST_DATA) + "/configs/01-ai__Yi-34B/config.json",
                       std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  ASSERT_GT(text.size(), 100U);
  text.erase(text.find_last_of('}') + 1);  // all but the last brace is needed
  expect_every_cut_refused(text);
}

TEST(Parse, EveryKindOfTokenCutAtEveryByte_IsRefused) {
  expect_every_cut_refused(R"( {"a": [true, false, null, NaN, Infinity, -Infinity, -1.5e+3, 0],)"
                           R"( "\u00e9\ud834\udd1e": "é€𝄞\n\"\\", "b": {"c": [[], {}]}})");
}

}  // namespace
}  // namespace kernelpath::json
