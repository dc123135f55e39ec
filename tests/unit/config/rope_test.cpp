#include "testing.h"

namespace kernelpath::config {
namespace {

TEST(RopeTheta, Missing_NamesTheFamilysDefault) {
  const auto model = loaded(llama({{"rope_theta", ""}}));
  EXPECT_EQ(model.rope.theta.value, 10000.0);
  EXPECT_EQ(model.rope.theta.origin.kind, OriginKind::kDefault);
  EXPECT_EQ(model.rope.theta.origin.rule, "family default: llama");
}

TEST(RopeTheta, MissingInAnUnknownFamily_StaysAbsent) {
  const auto model = loaded(unknown_family({{"rope_theta", ""}}));
  EXPECT_FALSE(model.rope.theta);
  EXPECT_EQ(model.rope.theta.origin.rule, "not stated, and the family is unknown");
}

TEST(RopeTheta, OlderNames_AreRead) {
  const auto where = [](const std::string& name, const std::string& value) {
    return loaded(unknown_family({{"rope_theta", ""}, {name, value}})).rope.theta.origin.where;
  };
  EXPECT_EQ(where("rotary_emb_base", "10000"), "/rotary_emb_base");
  EXPECT_EQ(where("rope_embedding_base", "10000"), "/rope_embedding_base");
  EXPECT_EQ(where("attn_config", R"({"rope_theta":500000.0})"), "/attn_config/rope_theta");
}

TEST(RopeType, OlderAndNewerName_NewerCounts) {
  const auto model =
      loaded(llama({{"rope_scaling", R"({"type":"linear","rope_type":"dynamic","factor":2.0})"}}));
  EXPECT_EQ(model.rope.type.value, "dynamic");
  EXPECT_TRUE(has_warning(model, "CONFIG-ROPE-TYPE-CONFLICT", "/rope_scaling/rope_type"));
}

TEST(RopeType, BothObjects_NewerCounts) {
  const auto model =
      loaded(llama({{"rope_scaling", R"({"type":"linear","factor":2.0})"},
                    {"rope_parameters", R"({"rope_type":"yarn","factor":4.0,"rope_theta":7.0})"}}));
  EXPECT_EQ(model.rope.type.value, "yarn");
  EXPECT_EQ(model.rope.factor.value, 4.0);
  EXPECT_EQ(model.rope.theta.value, 7.0);
  EXPECT_TRUE(has_warning(model, "CONFIG-ROPE-BOTH", "/rope_parameters"));
}

TEST(RopeType, NullScaling_IsTheDefault) {
  const auto model = loaded(llama({{"rope_scaling", "null"}}));
  EXPECT_EQ(model.rope.type.value, "default");
  EXPECT_FALSE(has_warning(model, "CONFIG-ROPE-BOTH"));
}

TEST(RopeType, FamiliesWithoutRope_SaySo) {
  const auto model = loaded(R"({"architectures":["GPT2LMHeadModel"],"model_type":"gpt2"})");
  EXPECT_EQ(model.rope.type.value, "none");
  EXPECT_FALSE(model.rope.theta);
  EXPECT_FALSE(model.layers.front().rope);
}

TEST(RopeType, Alibi_IsNoRope) {
  const auto model = loaded(R"({"architectures":["MptForCausalLM"],"model_type":"mpt",
      "d_model":4096,"n_heads":32,"n_layers":2,"attn_config":{"alibi":true}})");
  EXPECT_EQ(model.rope.type.value, "none");
  EXPECT_EQ(model.rope.type.origin.rule, "alibi");
}

TEST(RopeParameters, PerKindOfLayer_BothBasesAreKept) {
  const auto model = loaded(R"({"architectures":["Gemma3ForCausalLM"],"model_type":"gemma3_text",
      "rope_parameters":{"full_attention":{"rope_type":"linear","factor":8.0,"rope_theta":1e6},
                         "sliding_attention":{"rope_type":"default","rope_theta":1e4}}})");
  EXPECT_EQ(model.rope.type.value, "linear");
  EXPECT_EQ(model.rope.theta.value, 1e6);
  ASSERT_TRUE(model.rope.local_theta);
  EXPECT_EQ(model.rope.local_theta->value, 1e4);
  EXPECT_EQ(model.rope.local_theta->origin.where, "/rope_parameters/sliding_attention/rope_theta");
}

TEST(RopeParameters, OlderNameOfTheLocalBase_IsRead) {
  const auto model = loaded(R"({"architectures":["Gemma3ForCausalLM"],"model_type":"gemma3_text",
      "rope_theta":1000000,"rope_local_base_freq":10000})");
  ASSERT_TRUE(model.rope.local_theta);
  EXPECT_EQ(model.rope.local_theta->origin.where, "/rope_local_base_freq");
}

TEST(PartialRotary, RotaryDim_IsAFactorOfTheHead) {
  const auto model = loaded(unknown_family({{"rotary_dim", "64"}}));
  EXPECT_EQ(model.rope.partial_rotary_factor.value, 0.5);
  EXPECT_EQ(model.rope.partial_rotary_factor.origin.where, "/rotary_dim");
}

TEST(PartialRotary, FamilyDefault_IsNamed) {
  const auto model = loaded(llama({{"architectures", R"(["Qwen3NextForCausalLM"])"},
                                   {"model_type", "\"qwen3_next\""},
                                   {"hidden_size", "2048"},
                                   {"num_key_value_heads", "2"}}));
  EXPECT_EQ(model.rope.partial_rotary_factor.value, 0.25);
  EXPECT_EQ(model.rope.partial_rotary_factor.origin.rule, "family default: qwen3_next");
}

TEST(MropeSection, ThatFits_MakesTheTypeMrope) {
  const auto model =
      loaded(llama({{"rope_scaling", R"({"type":"mrope","mrope_section":[16,24,24]})"}}));
  EXPECT_EQ(model.rope.type.value, "mrope");
  EXPECT_EQ(model.rope.mrope_section, (std::vector<std::int64_t>{16, 24, 24}));
}

TEST(LongRope, OlderName_IsTheSameType) {
  const auto model = loaded(
      llama({{"head_dim", "4"},
             {"original_max_position_embeddings", "4096"},
             {"rope_scaling", R"({"type":"su","short_factor":[1,1],"long_factor":[2,2]})"}}));
  EXPECT_EQ(model.rope.type.value, "longrope");
  EXPECT_EQ(model.rope.original_max_position_embeddings.origin.where,
            "/original_max_position_embeddings");
}

}  // namespace
}  // namespace kernelpath::config
