#include "engines/vllm/answer_select.h"

#include "json/document.h"

#include <gtest/gtest.h>

#include <string>

namespace kernelpath::engines::vllm {
namespace {

Result<json::Value> answer(const std::string& in) {
  const auto document = json::parse_object(in, "in");
  EXPECT_TRUE(document) << in;
  return answer_select(built_in_profile("0.25.1"), document->root);
}

TEST(AnswerSelect, BadQuestions_NameTheField) {
  const std::pair<const char*, const char*> questions[] = {
      {R"({"head_size":128})", "/in/cap"},
      {R"({"cap":"9.0"})", "/in/head_size"},
      {R"({"cap":"9.0","head_size":"128"})", "/in/head_size"},
      {R"({"cap":"9.0","head_size":0})", "/in/head_size"},
      {R"({"cap":"99.0","head_size":128})", "/in/cap"},
      {R"({"cap":"9.0","head_size":128,"dtype":"int8"})", "/in/dtype"},
      {R"({"cap":"9.0","head_size":128,"kv_cache_dtype":"nvfp4_4over6"})", "/in/kv_cache_dtype"},
      {R"({"cap":"9.0","head_size":128,"block_size":0})", "/in/block_size"},
      {R"({"cap":"9.0","head_size":128,"attn_type":"causal"})", "/in/attn_type"},
      {R"({"cap":"9.0","head_size":128,"model":"llama"})", "/in/model"},
      {R"({"cap":"9.0","head_size":128,"profile":"no_gpu"})", "/in/profile"},
      {R"({"cap":"9.0","head_size":128,"flash_attn_version":5})", "/in/flash_attn_version"},
      {R"({"cap":"9.0","head_size":128,"dcp":0})", "/in/dcp"},
      {R"({"cap":"9.0","head_size":128,"use_mla":1})", "/in/use_mla"},
  };
  for (const auto& [question, where] : questions) {
    const auto answered = answer(question);
    ASSERT_FALSE(answered) << question;
    EXPECT_EQ(answered.error().where, where) << question;
    EXPECT_EQ(answered.error().code, ErrorCode::kBatchRequest);
  }
}

TEST(AnswerSelect, AbsentLists_AreLeftOut) {
  const auto answered = answer(R"({"cap":"9.0","head_size":128,"backend":"flash_attn"})");
  ASSERT_TRUE(answered);
  EXPECT_EQ(answered->find("valid"), nullptr);
  EXPECT_EQ(answered->find("layout"), nullptr);
  EXPECT_EQ(answered->find("precluded"), nullptr);
  EXPECT_NE(answered->find("rejected"), nullptr);
}

}  // namespace
}  // namespace kernelpath::engines::vllm
