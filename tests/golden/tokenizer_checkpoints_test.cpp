// The tokenizers of the checkpoints: the ids of every recorded prompt that has a text.

#include "json/document.h"
#include "recorded.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace kernelpath::tokenizer {
namespace {

TEST(TokenizersOfCheckpoints, Prompts_HaveTheRecordedIds) {
  const std::filesystem::path root = std::string(KERNELPATH_TEST_DATA) + "/checkpoints";
  std::size_t texts = 0;
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    if (!entry.is_directory()) continue;
    const std::string folder = entry.path().string();
    SCOPED_TRACE(folder);
    const auto tokenizer = load(folder);
    ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().text();
    EXPECT_TRUE((*tokenizer)->warnings().empty()) << (*tokenizer)->warnings()[0].message;
    EXPECT_FALSE((*tokenizer)->special_tokens().eos.empty());
    const std::string path = folder + "/golden.json";
    const auto golden = json::parse_object(read_text(path), path).value();
    for (const json::Value& prompt : golden.root.find("prompts")->items()) {
      const json::Value* text = prompt.find_non_null("text");
      if (text == nullptr) continue;
      ++texts;
      EXPECT_EQ((*tokenizer)->encode(text->as_string()).value(),
                ids_of(*prompt.find("prompt_ids")));
      // What the model wrote can be read, step by step as well as at once.
      const auto ids = ids_of(*prompt.find("output_ids"));
      StreamDecoder stream = (*tokenizer)->stream_decoder();
      std::string streamed;
      for (const TokenId id : ids) streamed += stream.push(id);
      EXPECT_EQ(streamed + stream.flush(),
                (*tokenizer)->decode(ids, {.refuse_unknown_ids = false}).value());
    }
  }
  EXPECT_GT(texts, 100U);
}

}  // namespace
}  // namespace kernelpath::tokenizer
