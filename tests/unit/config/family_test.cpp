#include "config/family.h"

#include "testing.h"

#include <thread>
#include <vector>

namespace kernelpath::config {
namespace {

TEST(FindFamily, KnownType_HasItsDefaultsAndAnUnknownNone) {
  const Family* mixtral = find_family("mixtral");
  ASSERT_NE(mixtral, nullptr);
  ASSERT_NE(mixtral->default_of("num_key_value_heads"), nullptr);
  EXPECT_EQ(mixtral->default_of("num_key_value_heads")->as_integer(), 8);
  EXPECT_EQ(mixtral->default_of("sliding_window"), nullptr);
  EXPECT_TRUE(mixtral->has_field("sliding_window"));
  EXPECT_FALSE(mixtral->has_field("kv_lora_rank"));
  EXPECT_EQ(mixtral->rule(), "family default: mixtral");
  EXPECT_EQ(find_family("nobody"), nullptr);
  EXPECT_EQ(find_family(""), nullptr);
}

TEST(FindFamily, SeveralThreads_GetTheSameRow) {
  std::vector<const Family*> found(8, nullptr);
  std::vector<std::thread> threads;
  for (const Family*& slot : found) threads.emplace_back([&slot] { slot = find_family("gemma2"); });
  for (std::thread& thread : threads) thread.join();
  ASSERT_NE(found.front(), nullptr);
  for (const Family* family : found) EXPECT_EQ(family, found.front());
}

TEST(Family, Multimodal_NamesItsLanguageModel) {
  const Family* omni = find_family("qwen2_5_omni");
  ASSERT_NE(omni, nullptr);
  EXPECT_EQ(omni->text_field(), "thinker_config/text_config");
  EXPECT_EQ(omni->text_model_type(), "qwen2_5_omni_text");
}

TEST(Family, Patterns_Repeat) {
  const Family* gemma4 = find_family("gemma4_text");
  ASSERT_NE(gemma4, nullptr);
  EXPECT_EQ(gemma4->layer_name(0, 8), "sliding_attention");
  EXPECT_EQ(gemma4->layer_name(5, 8), "full_attention");
  EXPECT_EQ(gemma4->layer_name(7, 8), "full_attention") << "the last layer never slides";
  EXPECT_EQ(find_family("llama")->layer_name(0, 4), "");
}

TEST(Family, Aliases_AreTheFamilysOwnNames) {
  EXPECT_EQ(find_family("gpt2")->alias("hidden_size"), "n_embd");
  EXPECT_EQ(find_family("llama")->alias("hidden_size"), "");
}

TEST(ModelTypesOfClass, EveryClass_IsFoundBothWays) {
  const auto llama = model_types_of_class("LlamaForCausalLM");
  ASSERT_FALSE(llama.empty());
  EXPECT_EQ(llama.front(), "llama") << "others reuse the class";
  EXPECT_THAT(llama, testing::Contains("exaone"));
  EXPECT_EQ(model_types_of_class("DeepseekV3ForCausalLM").front(), "deepseek_v3");
  EXPECT_TRUE(model_types_of_class("NobodyForCausalLM").empty());
}

TEST(DefaultsSource, Defaults_NameTheirVersion) {
  EXPECT_THAT(defaults_source(), testing::StartsWith("transformers "));
}

}  // namespace
}  // namespace kernelpath::config
