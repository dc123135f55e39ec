#include "features/shell_words.h"

#include <gtest/gtest.h>

namespace kernelpath::features {
namespace {

TEST(QuoteWords, SplitAgain_AreTheSameWords) {
  const std::vector<std::string> words = {
      "trtllm-serve", "a model", "--x=it's", "", "$HOME", "a\"b", "back\\slash", "{\"k\": [1, 2]}"};
  const auto split = split_words(quote_words(words));
  ASSERT_TRUE(split);
  EXPECT_EQ(*split, words);
}

}  // namespace
}  // namespace kernelpath::features
