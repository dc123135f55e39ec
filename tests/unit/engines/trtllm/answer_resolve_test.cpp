#include "engines/trtllm/answer_resolve.h"

#include "json/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelpath::engines::trtllm {
namespace {

json::Value value(const std::string& text) {
  const auto document = json::parse(text, "question");
  EXPECT_TRUE(document) << text;
  return document->root;
}

TEST(AnswerResolve, QuestionThatCannotBeRead_NamesTheField) {
  const struct {
    const char* in;
    const char* where;
  } questions[] = {
      {R"([])", ""},
      {R"({})", "/op"},
      {R"({"op": "resolve"})", "/op"},
      {R"({"op": 1})", "/op"},
      {R"({"op": "resolve_class"})", "/config"},
      {R"({"op": "resolve_class", "config": []})", "/config"},
      {R"({"op": "resolve_class", "config": {"architectures": "A"}})", "/config/architectures"},
      {R"({"op": "resolve_class", "config": {"architectures": [1]}})", "/config/architectures"},
      {R"({"op": "resolve_class", "config": {}, "option": {}})", "/option"},
      {R"({"op": "from_config", "config": {"hidden_size": 1.5}})", "/config/hidden_size"},
      {R"({"op": "from_config", "config": {}, "options": {"modeling_v2": "on"}})",
       "/options/modeling_v2"},
      {R"({"op": "from_config", "config": {}, "options": {"sm": 103}})", "/options/sm"},
      {R"({"op": "from_config", "config": {}, "options": {"sm": [-1, 0]}})", "/options/sm"},
      {R"({"op": "from_config", "config": {}, "options": {"world_size": 0}})",
       "/options/world_size"},
      {R"({"op": "from_config", "config": {}, "options": {"mm_encoder": true}})",
       "/options/mm_encoder"},
      {R"({"op": "vision"})", "/arch"},
      {R"({"op": "builder", "mode": "MTP", "ask_modes_of": "nodot"})", "/ask_modes_of"},
      {R"({"op": "getattr", "name": null})", "/name"},
      {R"({"op": "export", "external_modules": {"a.b": [{"arch": "A"}]}})",
       "/external_modules/a.b/0/class"},
      {R"({"op": "export", "external_modules": {"a.b": [{"klass": "A"}]}})",
       "/external_modules/a.b/0"},
      {R"({"op": "export", "broken_modules": {"a": {}}})", "/broken_modules/a"},
      {R"({"op": "export", "broken_modules": {"a": {"missing": false}}})",
       "/broken_modules/a/missing"},
      {R"({"op": "export", "events_before": [{"op": "reload"}]})", "/events_before/0/op"},
      {R"({"op": "export", "events_before": [{"op": "import"}]})", "/events_before/0/module"},
      {R"({"op": "export", "events_before": [{"op": "declare", "map": {"A": 1}}]})",
       "/events_before/0/map/A"},
      {R"({"op": "attn_layer_keys", "layer_idx_sequence": [true]})", "/layer_idx_sequence"},
      {R"({"op": "is_builtin_zoo_module"})", "/module"},
  };
  for (const auto& question : questions) {
    const auto answer = answer_resolve(value(question.in));
    ASSERT_FALSE(answer) << question.in;
    EXPECT_EQ(answer.error().code, ErrorCode::kBatchRequest) << question.in;
    EXPECT_EQ(answer.error().where, question.where) << question.in;
  }
}

TEST(AnswerResolve, UnknownOp_HasNearMatches) {
  const auto answer = answer_resolve(value(R"({"op": "resolve_clas"})"));
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().near_matches, ::testing::Contains("resolve_class"));
}

TEST(AnswerResolve, NullDraftVocabSize_CountsAsPresent) {
  const auto answer = answer_resolve(value(
      R"({"op": "resolve_class",
          "config": {"architectures": ["LlamaForCausalLM"], "draft_vocab_size": null}})"));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->find("class")->as_string(), "Eagle3ForCausalLM");
}

TEST(AnswerResolve, ErrorInAnEarlierEvent_EndsTheQuestion) {
  const auto answer = answer_resolve(value(
      R"({"op": "vision", "arch": "CLIPVisionModel",
          "events_before": [{"op": "import", "module": "acme.models"}]})"));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->find("error")->find("name")->as_string(), "acme");
  EXPECT_TRUE(answer->find("steps")->items().empty());
}

TEST(AnswerResolve, IsResolveOp_KnowsItsQuestions) {
  EXPECT_TRUE(is_resolve_op("attn_layer_keys"));
  EXPECT_FALSE(is_resolve_op("attn_class"));
}

}  // namespace
}  // namespace kernelpath::engines::trtllm
