#include "testing.h"

namespace kernelpath::config {
namespace {

using testing::HasSubstr;

std::string of(const std::string& model_class, const std::string& model_type, Fields fields) {
  fields["architectures"] = "[\"" + model_class + "\"]";
  fields["model_type"] = "\"" + model_type + "\"";
  return llama(fields);
}

TEST(SlidingWindow, Mistral_SlidesInEveryLayer) {
  const auto model = loaded(of("MistralForCausalLM", "mistral", {{"sliding_window", "1024"}}));
  EXPECT_EQ(kinds(model), "ssss");
  EXPECT_EQ(model.layers[0].window, 1024);
  EXPECT_EQ(model.layers_origin.where, "/sliding_window");
}

TEST(SlidingWindow, Null_SwitchesTheFamilysDefaultOff) {
  const auto absent = loaded(of("MistralForCausalLM", "mistral", {}));
  EXPECT_EQ(absent.sliding_window.value, 4096) << "MistralConfig's default";
  const auto null = loaded(of("MistralForCausalLM", "mistral", {{"sliding_window", "null"}}));
  EXPECT_FALSE(null.sliding_window);
  EXPECT_EQ(kinds(null), "ffff");
}

TEST(SlidingWindow, ListWithNulls_RepeatsOverTheLayers) {
  const auto model = loaded(unknown_family({{"sliding_window", "[512, null]"}}));
  EXPECT_EQ(kinds(model), "sfsf");
  EXPECT_EQ(model.sliding_window.value, 512);
}

TEST(SlidingWindow, WiderThanTheContext_HasNoEffectAndWarns) {
  const auto model = loaded(unknown_family({{"sliding_window", "100000"}}));
  EXPECT_TRUE(has_warning(model, "CONFIG-WINDOW-LARGE", "/sliding_window"));
}

TEST(SlidingWindow, SwitchedOff_SaysSo) {
  const auto model = loaded(of("Qwen2ForCausalLM", "qwen2",
                               {{"sliding_window", "1024"}, {"use_sliding_window", "false"}}));
  EXPECT_EQ(kinds(model), "ffff");
  EXPECT_FALSE(model.sliding_window);
  EXPECT_THAT(model.sliding_window.origin.rule, HasSubstr("use_sliding_window is false"));
  EXPECT_THAT(model.sliding_window.origin.rule, HasSubstr("1024"));
}

TEST(SlidingWindow, SwitchedOffWithZero_IsNoError) {
  EXPECT_EQ(kinds(loaded(of("Qwen2ForCausalLM", "qwen2",
                            {{"sliding_window", "0"}, {"use_sliding_window", "false"}}))),
            "ffff");
}

TEST(SlidingWindow, OfAFamilyThatReadsNone_Warns) {
  const auto model = loaded(llama({{"sliding_window", "1024"}}));
  EXPECT_EQ(kinds(model), "ffff");
  EXPECT_TRUE(has_warning(model, "CONFIG-WINDOW-UNUSED", "/sliding_window"));
}

TEST(MaxWindowLayers, UpperLayers_Slide) {
  const Fields on = {{"sliding_window", "1024"}, {"use_sliding_window", "true"}};
  Fields some = on;
  some["max_window_layers"] = "3";
  EXPECT_EQ(kinds(loaded(of("Qwen2ForCausalLM", "qwen2", some))), "fffs");
  Fields many = on;
  many["max_window_layers"] = "5";
  const auto model = loaded(of("Qwen2ForCausalLM", "qwen2", many));
  EXPECT_EQ(kinds(model), "ffff");
  EXPECT_TRUE(has_warning(model, "CONFIG-WINDOW-LAYERS", "/max_window_layers"));
}

TEST(LayerTypes, ListOfNames_IsFollowed) {
  const auto model = loaded(llama(
      {{"layer_types",
        R"(["sliding_attention","full_attention","linear_attention","deepseek_sparse_attention"])"},
       {"sliding_window", "128"}}));
  EXPECT_EQ(kinds(model), "sflx");
  EXPECT_TRUE(model.layers[2].has_state);
  EXPECT_EQ(model.layers_origin.where, "/layer_types");
}

TEST(LayerTypes, SlidingWithoutAWindow_IsReportedAndRead) {
  const auto model = loaded(
      unknown_family({{"num_hidden_layers", "1"}, {"layer_types", R"(["sliding_attention"])"}}));
  EXPECT_EQ(kinds(model), "f");
  EXPECT_TRUE(has_warning(model, "CONFIG-WINDOW-MISSING", "/layer_types"));
}

TEST(LayerTypes, MissingNumberOfLayers_IsThatOfTheList) {
  const auto model = loaded(unknown_family(
      {{"num_hidden_layers", ""}, {"layer_types", R"(["full_attention","full_attention"])"}}));
  EXPECT_EQ(model.num_hidden_layers.value, 2);
  EXPECT_EQ(model.num_hidden_layers.origin.rule, "length of layer_types");
}

TEST(CompressRatios, OneEntryMoreThanLayers_IsSlicedInSilence) {
  const auto model = loaded(of("DeepseekV4ForCausalLM", "deepseek_v4",
                               {{"compress_ratios", "[0,0,4,128,4]"},
                                {"num_key_value_heads", "1"},
                                {"head_dim", "512"},
                                {"sliding_window", "128"},
                                {"intermediate_size", ""}}));
  EXPECT_EQ(kinds(model), "ssxx");
  EXPECT_EQ(model.layers[3].window, 128);
  ASSERT_TRUE(model.sparse);
  EXPECT_EQ(model.sparse->compress_ratios.size(), 5U);
  EXPECT_TRUE(model.warnings.empty()) << model.warnings.front().message;
}

TEST(HybridPattern, Letters_AreLayers) {
  const auto model = loaded(of("NemotronHForCausalLM", "nemotron_h",
                               {{"hybrid_override_pattern", R"("ME*-")"}, {"head_dim", "128"}}));
  EXPECT_EQ(kinds(model), "m-f-");
  EXPECT_TRUE(model.layers[1].moe);
  EXPECT_FALSE(model.layers[3].moe);
  EXPECT_FALSE(model.layers[2].rope) << "Nemotron-H has no RoPE";
  ASSERT_TRUE(model.linear_state);
}

TEST(HybridPattern, OtherLengthThanLayers_TheListCounts) {
  const auto model = loaded(of("NemotronHForCausalLM", "nemotron_h",
                               {{"hybrid_override_pattern", R"("M*")"}, {"head_dim", "128"}}));
  EXPECT_EQ(model.num_hidden_layers.value, 2);
  EXPECT_TRUE(has_warning(model, "CONFIG-LAYER-COUNT"));
}

TEST(BlockConfigs, Heads_DifferByLayer) {
  const auto model =
      loaded(unknown_family({{"num_hidden_layers", "3"},
                             {"num_key_value_heads", "null"},
                             {"block_configs",
                              R"([{"attention":{"n_heads_in_group":8},"ffn":{"ffn_mult":2.0}},
            {"attention":{"no_op":true},"ffn":{"no_op":true}},
            {"attention":{"n_heads_in_group":16}}])"}}));
  EXPECT_EQ(kinds(model), "f-f");
  EXPECT_EQ(model.num_key_value_heads_list, (std::vector<std::int64_t>{4, 0, 2}));
  EXPECT_EQ(model.num_key_value_heads.value, 3) << "the mean of the layers that attend";
  EXPECT_EQ(model.layers[0].intermediate_size, 5632) << "2 * 2 * 4096 / 3, up to 256";
  EXPECT_EQ(model.layers[1].intermediate_size, 0);
  EXPECT_EQ(attention_summary(model), "GQA 32:2-4");
}

TEST(Jamba, AttentionAndExperts_HaveTheirOwnPeriods) {
  const auto model = loaded(of("JambaForCausalLM", "jamba",
                               {{"attn_layer_period", "4"},
                                {"attn_layer_offset", "2"},
                                {"expert_layer_period", "2"},
                                {"expert_layer_offset", "1"},
                                {"num_experts", "16"},
                                {"num_experts_per_tok", "2"}}));
  EXPECT_EQ(kinds(model), "mmfm");
  EXPECT_EQ(std::vector<bool>({model.layers[0].moe, model.layers[1].moe, model.layers[2].moe,
                               model.layers[3].moe}),
            std::vector<bool>({false, true, false, true}));
}

TEST(Interval, StatedOrOfTheFamily_IsFromOneAttentionToTheNext) {
  const auto model = loaded(of("Qwen3NextForCausalLM", "qwen3_next",
                               {{"full_attention_interval", "2"}, {"num_key_value_heads", "2"}}));
  EXPECT_EQ(kinds(model), "lflf");
  const auto by_family =
      loaded(of("Qwen3NextForCausalLM", "qwen3_next", {{"num_key_value_heads", "2"}}));
  EXPECT_EQ(kinds(by_family), "lllf");
  EXPECT_EQ(by_family.layers_origin.rule, "family default: qwen3_next");
}

TEST(Llama4, LayersWithoutRope_AttendToEverything) {
  const Fields sizes = {
      {"attention_chunk_size", "2048"}, {"num_local_experts", "16"}, {"num_experts_per_tok", "1"}};
  const auto model = loaded(of("Llama4ForCausalLM", "llama4_text", sizes));
  EXPECT_EQ(kinds(model), "cccf");
  EXPECT_TRUE(model.layers[0].rope);
  EXPECT_FALSE(model.layers[3].rope);
  EXPECT_EQ(model.layers[0].window, 2048);
  Fields listed = sizes;
  listed["no_rope_layers"] = "[0,1,1,1]";
  EXPECT_EQ(kinds(loaded(of("Llama4ForCausalLM", "llama4_text", listed))), "fccc");
  Fields none = sizes;
  none["attention_chunk_size"] = "null";
  EXPECT_EQ(kinds(loaded(of("Llama4ForCausalLM", "llama4_text", none))), "ffff");
}

TEST(Cohere2, FullLayers_HaveNoRope) {
  const auto model = loaded(of("Cohere2ForCausalLM", "cohere2", {}));
  EXPECT_EQ(kinds(model), "sssf");
  EXPECT_TRUE(model.layers[0].rope);
  EXPECT_FALSE(model.layers[3].rope);
}

TEST(Sparse, IndexerFields_MakeEveryLayerSparse) {
  const auto model = loaded(of("DeepseekV32ForCausalLM", "deepseek_v32",
                               {{"index_topk", "2048"},
                                {"kv_lora_rank", "512"},
                                {"qk_nope_head_dim", "128"},
                                {"qk_rope_head_dim", "64"},
                                {"v_head_dim", "128"},
                                {"num_key_value_heads", "32"}}));
  EXPECT_EQ(kinds(model), "xxxx");
  EXPECT_EQ(model.layers[0].head_dim, 192);
  EXPECT_EQ(model.layers[0].v_head_dim, 128);
  EXPECT_EQ(attention_summary(model), "MLA kv_lora 512 + rope 64");
}

TEST(Encoder, Bert_IsOneUnlessItSaysThatItDecodes) {
  const std::string bert =
      R"("architectures":["BertModel"],"model_type":"bert","num_hidden_layers":2)";
  EXPECT_EQ(kinds(loaded("{" + bert + "}")), "ee");
  EXPECT_EQ(kinds(loaded("{" + bert + R"(,"is_decoder":true})")), "ff");
}

TEST(PerLayerConfig, OneLayer_IsOverridden) {
  const auto model = loaded(
      llama({{"per_layer_config", R"({"1":{"num_key_value_heads":4,"sliding_window":64}})"}}));
  EXPECT_EQ(kinds(model), "fsff");
  EXPECT_EQ(model.layers[1].num_key_value_heads, 4);
  EXPECT_EQ(model.layers[1].window, 64);
}

TEST(Experts, FirstDenseLayers_ComeBeforeAllOthers) {
  const auto model = loaded(unknown_family(
      {{"n_routed_experts", "8"}, {"num_experts_per_tok", "2"}, {"first_k_dense_replace", "1"}}));
  EXPECT_FALSE(model.layers[0].moe);
  EXPECT_TRUE(model.layers[3].moe);
}

TEST(Experts, SparseStepAndNamedLayers_AreDense) {
  const auto model = loaded(of("Qwen3MoeForCausalLM", "qwen3_moe",
                               {{"num_experts", "8"},
                                {"num_experts_per_tok", "2"},
                                {"decoder_sparse_step", "2"},
                                {"mlp_only_layers", "[3]"}}));
  EXPECT_EQ(std::vector<bool>({model.layers[0].moe, model.layers[1].moe, model.layers[2].moe,
                               model.layers[3].moe}),
            std::vector<bool>({false, true, false, false}));
}

TEST(SharedCache, LastLayers_ReadAnEarlierOne) {
  const auto model = loaded(unknown_family({{"num_kv_shared_layers", "1"}}));
  EXPECT_FALSE(model.layers[2].shares_kv);
  EXPECT_TRUE(model.layers[3].shares_kv);
}

}  // namespace
}  // namespace kernelpath::config
