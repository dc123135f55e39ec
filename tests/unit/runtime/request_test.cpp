#include "runtime/request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelpath::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<GenerationRequest> parse(std::string_view line) {
  return parse_request(line, 3, "prompts.jsonl", {.max_tokens = 16});
}

// "PLACE: MESSAGE" of the refusal.
std::string refusal(std::string_view line) {
  const Result<GenerationRequest> request = parse(line);
  return request ? "" : request.error().where + ": " + request.error().message;
}

TEST(ParseRequest, Prompt_TakesTheDefaults) {
  const GenerationRequest request = parse(R"({"prompt": "Hi"})").value();
  EXPECT_EQ(request.id, "3");
  EXPECT_EQ(request.prompt, "Hi");
  EXPECT_EQ(request.max_tokens, 16);
  EXPECT_TRUE(request.sampling.is_greedy());
}

TEST(ParseRequest, EveryField_IsRead) {
  const GenerationRequest request =
      parse(R"({"id": "a", "prompt_ids": [1, 0, 7], "max_tokens": 2, "ignore_eos": true,
                "temperature": 0.5, "top_k": 4, "top_p": 0.9, "min_p": 0.1,
                "repetition_penalty": 1.1, "presence_penalty": 0.2, "frequency_penalty": -0.3,
                "seed": 11, "stop": ["x", "y"], "logprobs": 3})")
          .value();
  EXPECT_EQ(request.id, "a");
  EXPECT_THAT(request.prompt_ids, ElementsAre(1, 0, 7));
  EXPECT_EQ(request.max_tokens, 2);
  EXPECT_TRUE(request.ignore_eos);
  EXPECT_EQ(request.sampling.temperature, 0.5);
  EXPECT_EQ(request.sampling.top_k, 4);
  EXPECT_EQ(request.sampling.top_p, 0.9);
  EXPECT_EQ(request.sampling.min_p, 0.1);
  EXPECT_EQ(request.sampling.repetition_penalty, 1.1);
  EXPECT_EQ(request.sampling.presence_penalty, 0.2);
  EXPECT_EQ(request.sampling.frequency_penalty, -0.3);
  EXPECT_EQ(request.sampling.seed, 11U);
  EXPECT_THAT(request.stop, ElementsAre("x", "y"));
  EXPECT_EQ(request.logprobs, 3);
}

TEST(ParseRequest, Messages_AreAConversation) {
  const GenerationRequest request =
      parse(R"({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}],
                "stop": "z"})")
          .value();
  ASSERT_EQ(request.messages.size(), 2U);
  EXPECT_EQ(request.messages[1].role, "user");
  EXPECT_EQ(request.messages[1].content, "u");
  EXPECT_THAT(request.stop, ElementsAre("z"));
}

TEST(ParseRequest, NotExactlyOnePrompt_IsRefused) {
  EXPECT_THAT(refusal("{}"), HasSubstr("3: has neither"));
  EXPECT_THAT(refusal(R"({"prompt": "a", "prompt_ids": [1]})"), HasSubstr("3: has more than one"));
}

TEST(ParseRequest, UnknownField_HasNearMatches) {
  const Result<GenerationRequest> request = parse(R"({"prompt": "a", "temprature": 1})");
  ASSERT_FALSE(request);
  EXPECT_EQ(request.error().where, "3:/temprature");
  EXPECT_THAT(request.error().near_matches, ElementsAre("temperature"));
}

TEST(ParseRequest, WrongValues_AreNamedByFieldAndLine) {
  EXPECT_THAT(refusal(R"({"prompt": 5})"), HasSubstr("3:/prompt: is not a string"));
  EXPECT_THAT(refusal(R"({"prompt_ids": []})"), HasSubstr("3:/prompt_ids: is not a list"));
  EXPECT_THAT(refusal(R"({"prompt_ids": [1, -2]})"), HasSubstr("3:/prompt_ids/1"));
  EXPECT_THAT(refusal(R"({"prompt_ids": [2147483648]})"), HasSubstr("3:/prompt_ids/0"));
  EXPECT_THAT(refusal(R"({"prompt": "a", "max_tokens": 0})"), HasSubstr("3:/max_tokens"));
  EXPECT_THAT(refusal(R"({"prompt": "a", "top_p": 2})"), HasSubstr("3:/top_p"));
  EXPECT_THAT(refusal(R"({"prompt": "a", "top_p": "x"})"), HasSubstr("3:/top_p"));
  EXPECT_THAT(refusal(R"({"prompt": "a", "stop": 1})"), HasSubstr("3:/stop"));
  EXPECT_THAT(refusal(R"({"prompt": "a", "stop": [1]})"), HasSubstr("3:/stop"));
  EXPECT_THAT(refusal(R"({"prompt": "a", "stop": ["x", ""]})"),
              HasSubstr("3:/stop: an empty text"));
  EXPECT_THAT(refusal("\xFF\xFE{}"), ::testing::StartsWith("3: UTF-16"));
  EXPECT_THAT(refusal(R"({"prompt": "a", "ignore_eos": 1})"), HasSubstr("3:/ignore_eos"));
  EXPECT_THAT(refusal(R"({"messages": [{"role": "user"}]})"), HasSubstr("3:/messages/0"));
  EXPECT_THAT(refusal(R"({"prompt": "a", "seed": -1})"), HasSubstr("3:/seed"));
}

TEST(ParseRequest, BrokenJson_HasTheLineInItsPlace) {
  const Result<GenerationRequest> request = parse(R"({"prompt": )");
  ASSERT_FALSE(request);
  EXPECT_EQ(request.error().code, ErrorCode::kInputJson);
  EXPECT_THAT(request.error().where, ::testing::StartsWith("3:"));
}

}  // namespace
}  // namespace kernelpath::runtime
