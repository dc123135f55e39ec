#include "engines/trtllm/answer_backend.h"

#include "json/document.h"
#include "json/writer.h"

#include <gtest/gtest.h>

namespace kernelpath::engines::trtllm {
namespace {

Result<json::Value> ask(const std::string& in) {
  return answer_backend(json::parse(in, "test").value().root);
}

std::string answer(const std::string& in) {
  const auto out = ask(in);
  return out ? json::to_text(*out) : "error at " + out.error().where;
}

TEST(AnswerBackend, UnknownOp_HasNearMatches) {
  const auto out = ask(R"({"op":"fmha_selct"})");
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().code, ErrorCode::kBatchRequest);
  EXPECT_EQ(out.error().where, "/in/op");
  ASSERT_FALSE(out.error().near_matches.empty());
  EXPECT_EQ(out.error().near_matches.front(), "fmha_select");
}

TEST(AnswerBackend, MalformedFields_AreNamed) {
  EXPECT_EQ(answer(R"([1])"), "error at /in");
  EXPECT_EQ(answer(R"({})"), "error at /in/op");
  EXPECT_EQ(answer(R"({"op":7})"), "error at /in/op");
  EXPECT_EQ(answer(R"({"op":"get_attention_backend"})"), "error at /in/name");
  EXPECT_EQ(answer(R"({"op":"get_attention_backend","name":"x","sparse":{"algorithm":1}})"),
            "error at /in/sparse/algorithm");
  EXPECT_EQ(answer(R"({"op":"get_attention_backend","name":"x","sparse":"dsa"})"),
            "error at /in/sparse");
  EXPECT_EQ(
      answer(R"({"op":"get_attention_backend","name":"TRTLLM","sparse":{"algorithm":"csa2"}})"),
      "error at /in/sparse/sm");
  EXPECT_EQ(answer(R"({"op":"create_attention","name":"x","variant":"nope"})"),
            "error at /in/variant");
  EXPECT_EQ(answer(R"({"op":"rope_gate","backend_class":"Nope"})"), "error at /in/backend_class");
  EXPECT_EQ(
      answer(R"({"op":"rope_gate","backend_class":"TrtllmAttention","kv_cache_compression":"x"})"),
      "error at /in/kv_cache_compression");
  EXPECT_EQ(answer(R"({"op":"llama4_chunk","attn_backend":"TRTLLM"})"), "error at /in/sm");
  EXPECT_EQ(answer(R"({"op":"enable_flash_mla","capability":[9]})"), "error at /in/capability");
  EXPECT_EQ(answer(R"({"op":"kv_bytes_per_token"})"), "error at /in/config");
  EXPECT_EQ(answer(R"({"op":"kv_bytes_per_token","config":{}})"),
            "error at /in/config/num_hidden_layers");
  EXPECT_EQ(answer(R"({"op":"kv_bytes_per_token","kv_dtype":"int3","config":{}})"),
            "error at /in/kv_dtype");
  EXPECT_EQ(answer(R"({"op":"fmha_select","sm":90,"head_dim":1.5})"), "error at /in/head_dim");
  EXPECT_EQ(answer(R"({"op":"fmha_select","sm":90,"head_dim":64,"input_type":"both"})"),
            "error at /in/input_type");
  EXPECT_EQ(answer(R"({"op":"flashinfer_inner","capability":[9,0],"num_kv_heads":0})"),
            "error at /in/num_kv_heads");
  EXPECT_EQ(answer(R"({"op":"merge_forward_args","kwargs":["a",1]})"), "error at /in/kwargs");
  EXPECT_EQ(answer(R"({"op":"model_default_merge"})"), "error at /in/model_default");
}

TEST(AnswerBackend, AbsentFields_HaveTheDocumentedDefaults) {
  EXPECT_EQ(answer(R"({"op":"get_attention_backend","name":"FLASHINFER"})"),
            R"({"class":"FlashInferAttention","warnings":[],"error":null,"sparse_dropped":false})");
  EXPECT_EQ(answer(R"({"op":"fmha_select","sm":90,"head_dim":128,"num_contexts":1})"),
            R"({"impl":"fallback","rejected":[],"available":["fallback"],"error":null})");
  EXPECT_EQ(answer(R"({"op":"merge_forward_args","forward_args_given":true})"),
            R"({"result":"FORWARD-ARGS"})");
  EXPECT_EQ(answer(R"({"op":"fmha_libs_env","TLLM_FMHA_LIBS":"+fallback,-"})"),
            R"({"libs":null,"error":{"type":"ValueError","code":"FMHA-ENV-EMPTY"}})");
}

TEST(AnswerBackend, TreeMask_RefusesBothMlaLibraries) {
  EXPECT_EQ(
      answer(R"({"op":"fmha_select","mla":true,"sm":100,"num_heads":128,"head_dim":576,
                 "q_dtype":"bf16","kv_dtype":"fp8","tokens_per_block":64,"num_generations":64,
                 "input_type":"generation_only","kv_lora_rank":512,"qk_rope_head_dim":64,
                 "spec_tree":true})"),
      R"({"impl":"fallback","rejected":[["cute_dsl_mla","TREE"],["flashinfer_trtllm_gen","SPEC-TREE"]],)"
      R"("available":["cute_dsl_mla","flashinfer_trtllm_gen","fallback"],"error":null})");
}

TEST(AnswerBackend, IndivisibleNvfp4_HasNoRuntimeBytes) {
  EXPECT_EQ(answer(R"({"op":"kv_bytes_per_token","kv_dtype":"nvfp4","config":{"num_hidden_layers":1,
                 "hidden_size":4,"num_attention_heads":1}})"),
            R"({"estimate_bytes":5,"runtime_data_bytes":null,"runtime_scale_bytes":null,)"
            R"("runtime_total_bytes":null,"estimate_equals_runtime":false,)"
            R"("error":{"type":"AssertionError","code":"NVFP4-INDIVISIBLE"}})");
}

TEST(AnswerBackend, HugeSizes_AreARefusedRequest) {
  EXPECT_EQ(answer(R"({"op":"kv_bytes_per_token","config":{"num_hidden_layers":9223372036854775807,
                       "hidden_size":4096,"num_attention_heads":32}})"),
            "error at /in/config");
}

}  // namespace
}  // namespace kernelpath::engines::trtllm
