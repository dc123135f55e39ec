// Compares with what the Python libraries `tokenizers` and `transformers` gave (golden/tokenizer).

#include "json/writer.h"
#include "recorded.h"
#include "tokenizer/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelpath::tokenizer {
namespace {

class Kind : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { recorded_ = load_recorded(GetParam()); }

  [[nodiscard]] const Tokenizer& tokenizer() const { return *recorded_->tokenizer; }
  [[nodiscard]] std::span<const json::Value> answers(std::string_view key) const {
    return recorded_->answers.root.find(key)->items();
  }

  void expect_decodes(const json::Value& answer) const {
    const auto ids = ids_of(*answer.find("ids"));
    EXPECT_EQ(tokenizer().decode(ids).value(), answer.find("decoded")->as_string());
    EXPECT_EQ(tokenizer().decode(ids, {.skip_special = true}).value(),
              answer.find("decoded_skip_special")->as_string());
  }

  std::unique_ptr<Recorded> recorded_;
};

TEST_P(Kind, Encode_EqualsRecordedIds) {
  ASSERT_GT(answers("cases").size(), 100U);
  for (const json::Value& answer : answers("cases")) {
    const std::string& text = answer.find("text")->as_string();
    SCOPED_TRACE(testing::PrintToString(text));
    EXPECT_EQ(tokenizer().encode(text).value(), ids_of(*answer.find("ids")));
    EXPECT_EQ(tokenizer().encode(text, {.add_special_tokens = false}).value(),
              ids_of(*answer.find("ids_no_special")));
  }
}

TEST_P(Kind, Decode_EqualsRecordedText) {
  for (const json::Value& answer : answers("cases")) expect_decodes(answer);
  ASSERT_GT(answers("decode_cases").size(), 10U);
  for (const json::Value& answer : answers("decode_cases")) expect_decodes(answer);
}

// Renders with the template that tokenizer_config.json has.
TEST_P(Kind, Chat_EqualsRecordedTextAndIds) {
  const json::Value* recorded = recorded_->answers.root.find("chat");
  if (recorded == nullptr) GTEST_SKIP() << "this kind has no chat template";
  const auto templates = load_chat_templates(recorded_->folder.path()).value();
  ASSERT_EQ(templates.size(), 1U);
  ASSERT_EQ(templates[0].text, recorded_->answers.root.find("chat_template")->as_string());
  for (const json::Value& answer : recorded->items()) {
    SCOPED_TRACE(json::to_text(answer));
    ChatRequest request{.messages = *answer.find("messages")};
    request.add_generation_prompt = answer.find("add_generation_prompt")->as_bool();
    const auto text = render_chat(templates[0], tokenizer().special_tokens(), request);
    if (const json::Value* error = answer.find("error")) {
      ASSERT_FALSE(text.has_value());
      EXPECT_THAT(text.error().message, testing::EndsWith(": " + error->as_string()));
      continue;
    }
    if (!text && text.error().code == ErrorCode::kUnavailable) GTEST_SKIP() << text.error().text();
    ASSERT_TRUE(text.has_value()) << text.error().text();
    EXPECT_EQ(*text, answer.find("text")->as_string());
    EXPECT_EQ(tokenizer().encode(*text, {.add_special_tokens = false}).value(),
              ids_of(*answer.find("ids")));
  }
}

TEST_P(Kind, VocabularySize_EqualsRecordedOne) {
  const std::int64_t recorded = recorded_->answers.root.find("vocab_size")->as_integer();
  EXPECT_EQ(tokenizer().vocabulary_size(), static_cast<std::size_t>(recorded));
}

INSTANTIATE_TEST_SUITE_P(Tokenizer, Kind, testing::ValuesIn(recorded_kinds()));

}  // namespace
}  // namespace kernelpath::tokenizer
