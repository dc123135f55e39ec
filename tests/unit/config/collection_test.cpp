// The collection of real configurations: everything loads, and some of it is looked at closely.

#include "config/show.h"
#include "testing.h"

#include <algorithm>
#include <filesystem>

namespace kernelpath::config {
namespace {

ModelConfig real(const std::string& folder) {
  auto model = load_model(real_config(folder));
  EXPECT_TRUE(model.has_value()) << model.error().text();
  return model ? *model : ModelConfig{};
}

std::vector<std::string> all_folders() {
  std::vector<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator(real_config(""))) {
    if (entry.is_directory()) folders.push_back(entry.path().filename().string());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

TEST(Collection, EveryFile_LoadsWithWhatAQuestionNeeds) {
  const auto folders = all_folders();
  ASSERT_GE(folders.size(), 287U);
  for (const std::string& folder : folders) {
    SCOPED_TRACE(folder);
    const auto model = load_model(real_config(folder));
    ASSERT_TRUE(model.has_value()) << model.error().text();
    EXPECT_TRUE(model->num_hidden_layers);
    EXPECT_TRUE(model->hidden_size);
    EXPECT_TRUE(model->num_attention_heads ||
                std::none_of(model->layers.begin(), model->layers.end(),
                             [](const Layer& layer) { return layer.kind == LayerKind::kFull; }));
    EXPECT_EQ(static_cast<std::int64_t>(model->layers.size()), *model->num_hidden_layers);
    EXPECT_TRUE(std::is_sorted(model->present_fields.begin(), model->present_fields.end()));
    EXPECT_FALSE(show_values(*model, "all").empty());
    EXPECT_TRUE(load_model(real_config(folder), {.partial = true}).has_value());
  }
}

TEST(Collection, Llama31_HasItsHeadsAndRope) {
  const auto model = real("meta-llama__Meta-Llama-3.1-8B");
  EXPECT_EQ(attention_summary(model), "GQA 32:8");
  EXPECT_EQ(model.head_dim.value, 128);
  EXPECT_EQ(model.rope.type.value, "llama3");
  EXPECT_EQ(model.rope.factor.value, 8);
  EXPECT_EQ(model.rope.original_max_position_embeddings.value, 8192);
  EXPECT_EQ(model.name, "meta-llama__Meta-Llama-3.1-8B");
}

TEST(Collection, DeepSeekV3_HasItsLatentAndExperts) {
  const auto model = real("deepseek-ai__DeepSeek-V3");
  ASSERT_TRUE(model.mla);
  EXPECT_EQ(model.mla->q_lora_rank.value, 1536);
  EXPECT_EQ(model.mla->kv_lora_rank.value, 512);
  EXPECT_EQ(model.quantization.algo.value, "FP8_BLOCK_SCALES");
  ASSERT_TRUE(model.moe);
  EXPECT_EQ(std::count_if(model.layers.begin(), model.layers.end(),
                          [](const Layer& layer) { return layer.moe; }),
            58);
}

TEST(Collection, DeepSeekV2Lite_HasMlaWithoutQueryRank) {
  const auto model = real("deepseek-ai__DeepSeek-V2-Lite");
  ASSERT_TRUE(model.mla);
  EXPECT_FALSE(model.mla->q_lora_rank);
}

TEST(Collection, SmallDeepSeekVl_IsNotMla) {
  const auto model = real("deepseek-ai__deepseek-vl2-tiny");
  EXPECT_FALSE(model.mla);
  EXPECT_EQ(model.text_pointer, "/language_config");
  EXPECT_EQ(attention_summary(model), "MHA 10");
}

TEST(Collection, QwenOmni_ReadsItsThinker) {
  EXPECT_EQ(real("transformers-default__qwen2_5_omni").text_pointer, "/thinker_config/text_config");
  EXPECT_TRUE(real("transformers-default__qwen2_5_omni").has_audio);
}

TEST(Collection, NemotronNas_HasAttentionInSomeLayers) {
  const auto model = real("nvidia__Llama-3_3-Nemotron-Super-49B-v1");
  EXPECT_EQ(model.num_key_value_heads_list.size(), 80U);
  EXPECT_EQ(
      std::count(model.num_key_value_heads_list.begin(), model.num_key_value_heads_list.end(), 0),
      31);
}

TEST(Collection, Gemma4_HasOtherHeadsInFullLayers) {
  const auto model = real("google__gemma-4-26B-A4B");
  EXPECT_EQ(model.layers[0].head_dim, 256);
  EXPECT_EQ(model.layers[5].head_dim, 512);
  EXPECT_EQ(model.layers[5].num_key_value_heads, 2);
  EXPECT_EQ(attention_summary(model), "GQA 16:2-8");
  EXPECT_EQ(model.rope.type.value, "proportional");
}

TEST(Collection, MiMoV2_HasOtherHeadsInSlidingLayers) {
  const auto model = real("XiaomiMiMo__MiMo-V2-Flash");
  EXPECT_EQ(model.layers[0].num_key_value_heads, 4);
  EXPECT_EQ(model.layers[1].num_key_value_heads, 8);
  EXPECT_EQ(model.layers[1].v_head_dim, 128);
}

TEST(Collection, QuantisationBesideTheFile_IsRead) {
  EXPECT_EQ(real("nvidia__Llama-3.1-70B-Instruct-FP8").quantization.algo.origin.where,
            "hf_quant_config.json:/quantization/quant_algo");
  const auto mixed = real("nvidia__Qwen3.6-35B-A3B-NVFP4");
  EXPECT_EQ(mixed.quantization.algo.value, "MIXED_PRECISION");
  EXPECT_EQ(mixed.quantization.kv_cache_dtype.value, "fp8");
  EXPECT_FALSE(mixed.quantization.layer_algos.empty());
  const auto string_scheme = real("Qwen__Qwen3-32B-FP8-Static-PerTensor");
  EXPECT_TRUE(has_warning(string_scheme, "CONFIG-KV-SCHEME"));
  EXPECT_TRUE(has_warning(string_scheme, "CONFIG-QUANT-METHOD"));
}

TEST(Collection, Drafts_HaveTheirFields) {
  const auto eagle = real("SpecForge__llama3-8B-eagle3");
  EXPECT_TRUE(eagle.draft.has_draft_vocab_size);
  EXPECT_EQ(eagle.draft.draft_vocab_size.value, 32000);
  const auto flash = real("SpecForge__qwen3-8b-dflash");
  EXPECT_TRUE(flash.draft.has_dflash_config);
  EXPECT_EQ(flash.draft.block_size.value, 16);
  EXPECT_EQ(flash.draft.target_layer_ids.size(), 5U);
  EXPECT_EQ(real("SpecForge__gpt-oss-20B-eagle3").draft.target_layer_ids,
            (std::vector<std::int64_t>{1, 11, 21}));
}

TEST(Collection, OldNames_AreRead) {
  const auto glm = real("THUDM__chatglm3-6b");
  EXPECT_EQ(glm.num_hidden_layers.origin.where, "/num_layers");
  EXPECT_EQ(glm.num_key_value_heads.value, 2);
  EXPECT_EQ(glm.head_dim.origin.where, "/kv_channels");
  const auto falcon = real("tiiuae__falcon-7b-reduced");
  EXPECT_EQ(attention_summary(falcon), "MQA 16:1");
  EXPECT_EQ(attention_summary(real("tiiuae__falcon-40b-reduced")), "GQA 16:8");
  EXPECT_EQ(attention_summary(real("databricks__dbrx-instruct")), "GQA 48:12");
}

TEST(Collection, Encoders_DoNotDecode) {
  EXPECT_EQ(real("BAAI__bge-large-en").layers[0].kind, LayerKind::kEncoder);
  const auto modern = real("transformers-default__modernbert");
  EXPECT_EQ(modern.layers[1].kind, LayerKind::kEncoder);
  EXPECT_EQ(modern.layers[1].window, 128);
  EXPECT_FALSE(modern.layers[0].window);
}

TEST(Collection, CrossAttentionLayers_AreTold) {
  const auto model = real("meta-llama__Llama-3.2-11B-Vision-Instruct");
  EXPECT_EQ(model.layers[3].kind, LayerKind::kCross);
  EXPECT_EQ(model.layers[4].kind, LayerKind::kFull);
}

}  // namespace
}  // namespace kernelpath::config
