// Compares with what the Python libraries `tokenizers` and `transformers` gave (golden/tokenizer).

#include "recorded.h"

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

TEST_P(Kind, VocabularySize_EqualsRecordedOne) {
  const std::int64_t recorded = recorded_->answers.root.find("vocab_size")->as_integer();
  EXPECT_EQ(tokenizer().vocabulary_size(), static_cast<std::size_t>(recorded));
}

INSTANTIATE_TEST_SUITE_P(Tokenizer, Kind, testing::ValuesIn(recorded_kinds()));

}  // namespace
}  // namespace kernelpath::tokenizer
