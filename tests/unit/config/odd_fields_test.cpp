// Rows C, D of the list of bad inputs that are read, with a warning or with a default that says so.

#include "testing.h"

namespace kernelpath::config {
namespace {

using testing::HasSubstr;

TEST(Numbers, ExponentAndFractionThatAreExact_AreTakenWithWarning) {
  const auto model = loaded(llama({{"vocab_size", "1e3"}, {"num_hidden_layers", "32.0"}}));
  EXPECT_EQ(model.vocab_size.value, 1000);
  EXPECT_EQ(model.num_hidden_layers.value, 32);
  EXPECT_TRUE(has_warning(model, "CONFIG-FLOAT-INTEGER", "/vocab_size"));
  EXPECT_TRUE(has_warning(model, "CONFIG-FLOAT-INTEGER", "/num_hidden_layers"));
}

TEST(Numbers, LengthBeyond64Bits_IsNoLimit) {
  const auto model =
      loaded(llama({{"max_position_embeddings", "1000000000000000019884624838656"}}));
  EXPECT_FALSE(model.max_position_embeddings);
  EXPECT_EQ(model.max_position_embeddings.origin.rule, "no limit");
  EXPECT_TRUE(has_warning(model, "CONFIG-NO-LIMIT", "/max_position_embeddings"));
}

TEST(Numbers, InfinityInAnUnusedField_IsOnlyTheReadersWarning) {
  const auto model = loaded(llama({{"time_step_limit", "[0.0, Infinity]"}}));
  EXPECT_TRUE(has_warning(model, "JSON-NONFINITE"));
}

TEST(Keys, RepeatedKey_LastCountsAndStrictRefuses) {
  std::string text = llama();
  text.insert(1, R"("num_hidden_layers":32,)");
  EXPECT_EQ(loaded(text).num_hidden_layers.value, 4);
  EXPECT_TRUE(has_warning(loaded(text), "JSON-DUPLICATE-KEY"));
  const auto strict = load(text, {.strict = true});
  ASSERT_FALSE(strict.has_value());
  EXPECT_EQ(strict.error().where, "/num_hidden_layers");
  EXPECT_THAT(strict.error().hint, HasSubstr("--strict"));
}

TEST(Architectures, Missing_TakesTheModelTypesClass) {
  for (const std::string value : {"", "null", "[]"}) {
    const auto model = loaded(llama({{"architectures", value}}));
    EXPECT_TRUE(model.architectures.empty());
    EXPECT_EQ(model.has_architectures, !value.empty());
    EXPECT_EQ(model.architectures_null, value == "null");
    EXPECT_EQ(model.inferred_architecture.value, "LlamaForCausalLM");
    EXPECT_TRUE(has_warning(model, "CONFIG-ARCH-MISSING", "/architectures"));
  }
}

TEST(Architectures, Two_BothAreShown) {
  const auto model =
      loaded(llama({{"architectures", R"(["LlamaForCausalLM","MistralForCausalLM"])"}}));
  EXPECT_EQ(model.architectures.size(), 2U);
  EXPECT_THAT(warning_text(model, "CONFIG-ARCH-MULTIPLE"),
              HasSubstr("LlamaForCausalLM and MistralForCausalLM"));
}

TEST(Architectures, OtherFamilyThanModelType_BothAreShown) {
  const auto model = loaded(llama({{"model_type", "\"mixtral\""}}));
  const std::string text = warning_text(model, "CONFIG-ARCH-CONFLICT");
  EXPECT_THAT(text, HasSubstr("LlamaForCausalLM"));
  EXPECT_THAT(text, HasSubstr("mixtral"));
  EXPECT_FALSE(model.moe) << "a Llama class has no experts unless the file says so";
}

TEST(Architectures, LanguageModelOfAWhole_IsNoConflict) {
  const auto model = loaded(R"({"architectures":["Gemma3ForConditionalGeneration"],
      "model_type":"gemma3","text_config":{"model_type":"gemma3_text"}})");
  EXPECT_FALSE(has_warning(model, "CONFIG-ARCH-CONFLICT"));
}

TEST(RemoteCode, UnknownClassWithAutoMap_NothingIsRun) {
  const auto model = loaded(unknown_family({{"auto_map", R"({"AutoModel":"modeling.Nobody"})"}}));
  EXPECT_TRUE(model.needs_remote_code);
  EXPECT_THAT(warning_text(model, "CONFIG-REMOTE-CODE"), HasSubstr("nothing of it was run"));
  EXPECT_FALSE(has_warning(model, "CONFIG-CODE-ELSEWHERE"));
}

TEST(RemoteCode, AnotherRepository_IsASecurityWarningInEveryNest) {
  const std::string map = R"({"AutoConfig":"other/repo--module.Class"})";
  const auto model = loaded(llama({{"auto_map", map},
                                   {"vision_config", R"({"auto_map":)" + map + "}"},
                                   {"text_config", R"({"auto_map":)" + map + "}"}}));
  for (const std::string where : {"/auto_map/AutoConfig", "/vision_config/auto_map/AutoConfig",
                                  "/text_config/auto_map/AutoConfig"}) {
    EXPECT_TRUE(has_warning(model, "CONFIG-CODE-ELSEWHERE", where)) << where;
  }
}

TEST(RemoteCode, ListOfTokenizers_IsSearched) {
  const auto model = loaded(llama({{"auto_map", R"({"AutoTokenizer":["a/b--c.D", null]})"}}));
  EXPECT_TRUE(has_warning(model, "CONFIG-CODE-ELSEWHERE", "/auto_map/AutoTokenizer/0"));
}

TEST(RemoteCode, FieldsThatRunCodeElsewhere_AreReported) {
  const auto model = loaded(llama({{"_attn_implementation_internal", "\"evil/kernels\""},
                                   {"model_file", "\"model.py\""},
                                   {"trust_remote_code", "true"}}));
  EXPECT_TRUE(has_warning(model, "CONFIG-CODE-FIELD", "/_attn_implementation_internal"));
  EXPECT_TRUE(has_warning(model, "CONFIG-CODE-FIELD", "/model_file"));
  EXPECT_TRUE(has_warning(model, "CONFIG-CODE-FIELD", "/trust_remote_code"));
}

TEST(RemoteCode, OrdinaryAttentionName_IsSilent) {
  const auto model = loaded(llama({{"_attn_implementation", "\"flash_attention_2\""}}));
  EXPECT_FALSE(has_warning(model, "CONFIG-CODE-FIELD"));
}

TEST(KvHeads, MissingOrNull_IsMultiHead) {
  for (const std::string value : {"", "null"}) {
    const auto model = loaded(llama({{"num_key_value_heads", value}}));
    EXPECT_EQ(model.num_key_value_heads.value, 32);
    EXPECT_EQ(model.num_key_value_heads.origin.kind, OriginKind::kDefault);
  }
}

TEST(KvHeads, OlderNames_AreRead) {
  const auto heads = [](Fields fields) {
    fields["num_key_value_heads"] = "";
    return loaded(unknown_family(std::move(fields))).num_key_value_heads;
  };
  EXPECT_EQ(heads({{"num_kv_heads", "4"}}).origin.where, "/num_kv_heads");
  EXPECT_EQ(heads({{"n_head_kv", "4"}}).value, 4);
  EXPECT_EQ(heads({{"multi_query_group_num", "2"}}).value, 2);
  EXPECT_EQ(heads({{"multi_query", "true"}}).value, 1);
  EXPECT_EQ(
      heads({{"multi_query", "true"}, {"new_decoder_architecture", "true"}, {"num_kv_heads", "8"}})
          .value,
      8);
  EXPECT_EQ(heads({{"attn_config", R"({"kv_n_heads":16})"}}).origin.where,
            "/attn_config/kv_n_heads");
}

TEST(KvHeads, MissingInAFamilyWithItsOwnNumber_TakesThat) {
  const auto model = loaded(llama({{"architectures", R"(["MixtralForCausalLM"])"},
                                   {"model_type", "\"mixtral\""},
                                   {"num_key_value_heads", ""}}));
  EXPECT_EQ(model.num_key_value_heads.value, 8);
  EXPECT_EQ(model.num_key_value_heads.origin.rule, "family default: mixtral");
}

TEST(HeadDim, NullOrMissing_IsComputed) {
  for (const std::string value : {"", "null"}) {
    const auto model = loaded(llama({{"head_dim", value}}));
    EXPECT_EQ(model.head_dim.value, 128);
    EXPECT_EQ(model.head_dim.origin.rule, "hidden_size / num_attention_heads");
    EXPECT_EQ(model.head_dim_is_explicit.value, false);
  }
  EXPECT_EQ(loaded(llama({{"head_dim", "64"}})).head_dim_is_explicit.value, true);
}

TEST(HeadDim, FamilyWithItsOwn_WarnsWhereWidthsDoNotDivide) {
  const auto model = loaded(llama({{"architectures", R"(["Qwen3ForCausalLM"])"},
                                   {"model_type", "\"qwen3\""},
                                   {"hidden_size", "4100"}}));
  EXPECT_EQ(model.head_dim.value, 128);
  EXPECT_TRUE(has_warning(model, "CONFIG-HEAD-DIM", "/head_dim"));
}

TEST(Context, TenMillionTokens_IsRead) {
  EXPECT_EQ(loaded(llama({{"max_position_embeddings", "10485760"}})).max_position_embeddings.value,
            10485760);
}

TEST(TextConfig, NullOrEmpty_OuterFieldsCount) {
  for (const std::string value : {"null", "{}"}) {
    const auto model = loaded(llama({{"text_config", value}}));
    EXPECT_EQ(model.text_pointer, "");
    EXPECT_EQ(model.num_hidden_layers.origin.where, "/num_hidden_layers");
  }
}

TEST(TextConfig, OtherNumberOfLayersOutside_InnerCounts) {
  const auto model = loaded(llama({{"text_config", llama({{"num_hidden_layers", "7"}})}}));
  EXPECT_EQ(model.num_hidden_layers.value, 7);
  const std::string text = warning_text(model, "CONFIG-TEXT-CONFLICT");
  EXPECT_THAT(text, HasSubstr("is 4 at the top"));
  EXPECT_THAT(text, HasSubstr("7 in /text_config"));
}

TEST(Mla, NullRankInAClassNamedForIt_IsPlainAttention) {
  const auto model = loaded(llama({{"architectures", R"(["DeepseekV2ForCausalLM"])"},
                                   {"model_type", "\"deepseek_v2\""},
                                   {"kv_lora_rank", "null"},
                                   {"qk_nope_head_dim", "0"},
                                   {"qk_rope_head_dim", "0"},
                                   {"v_head_dim", "0"},
                                   {"num_experts_per_tok", "2"}}));
  EXPECT_FALSE(model.mla);
  EXPECT_TRUE(model.has_kv_lora_rank);
  EXPECT_EQ(model.head_dim.value, 128);
  EXPECT_EQ(attention_summary(model), "GQA 32:8");
}

TEST(Dtype, BothNames_NewerCounts) {
  const auto model = loaded(llama({{"dtype", "\"float16\""}}));
  EXPECT_EQ(model.dtype.value, "float16");
  EXPECT_TRUE(has_warning(model, "CONFIG-DTYPE-CONFLICT", "/dtype"));
  EXPECT_FALSE(has_warning(loaded(llama({{"dtype", "\"bfloat16\""}})), "CONFIG-DTYPE-CONFLICT"));
}

TEST(Dtype, NullAndPrefix_AreMissingAndAccepted) {
  EXPECT_FALSE(loaded(llama({{"torch_dtype", "null"}})).dtype);
  EXPECT_EQ(loaded(llama({{"torch_dtype", "\"torch.bfloat16\""}})).dtype.value, "bfloat16");
  EXPECT_EQ(loaded(llama({{"torch_dtype", ""}, {"text_config", llama()}})).dtype.origin.where,
            "/text_config/torch_dtype");
}

TEST(Family, UnknownModelType_IsFoundByTheClass) {
  const auto model = loaded(llama({{"model_type", "\"nobody\""}, {"rope_theta", ""}}));
  EXPECT_EQ(model.rope.theta.origin.rule, "family default: llama");
}

TEST(Limits, LayersUpToTheLimit_Load) {
  EXPECT_EQ(loaded(llama({{"num_hidden_layers", "10000"}})).layers.size(), 10000U);
}

}  // namespace
}  // namespace kernelpath::config
