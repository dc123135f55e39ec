#include "engines/vllm/model_class.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelpath::engines::vllm {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

ModelClass resolve(std::string_view version, ModelClassQuestion question) {
  return resolve_model_class(built_in_registry(version), question);
}

TEST(ResolveModelClass, RegisteredName_IsItself) {
  const ModelClass model = resolve("0.25.1", {.architectures = {"LlamaForCausalLM"}});
  ASSERT_FALSE(model.error);
  EXPECT_EQ(model.module, "vllm.model_executor.models.llama");
  EXPECT_EQ(model.runner, "generate");
  EXPECT_EQ(model.convert, "none");
  EXPECT_FALSE(model.transformers_backend);
}

TEST(ResolveModelClass, Alias_HasTheClassThatWasDefined) {
  EXPECT_EQ(resolve("0.25.1", {.architectures = {"GlmMoeDsaForCausalLM"}}).class_name,
            "GlmMoeDsaForCausalLM");
  EXPECT_EQ(resolve("0.33.0", {.architectures = {"GlmMoeDsaForCausalLM"}}).class_name,
            "DeepseekV32ForCausalLM");
}

TEST(ResolveModelClass, UnregisteredEnding_IsReplaced) {
  const ModelClass model = resolve("0.25.1", {.architectures = {"LlamaForTokenClassification"}});
  EXPECT_EQ(model.architecture, "LlamaForTokenClassification");
  EXPECT_EQ(model.class_name, "LlamaForCausalLM");
  EXPECT_EQ(model.runner, "pooling");
  EXPECT_EQ(model.convert, "classify");
  EXPECT_EQ(model.normalised_from, "LlamaForTokenClassification");
}

TEST(ResolveModelClass, FirstThatLoads_Wins) {
  const ModelClass model =
      resolve("0.25.1", {.architectures = {"NobodyKnowsThis", "Qwen3ForCausalLM"}});
  EXPECT_EQ(model.architecture, "Qwen3ForCausalLM");
}

TEST(ResolveModelClass, PoolingFile_MakesADecoderPool) {
  const ModelClass model =
      resolve("0.25.1", {.architectures = {"Qwen3ForCausalLM"}, .has_pooling_config = true});
  EXPECT_EQ(model.runner, "pooling");
  EXPECT_EQ(model.convert, "embed");
}

TEST(ResolveModelClass, ExplicitConversion_ImpliesPooling) {
  const ModelClass model =
      resolve("0.25.1", {.architectures = {"Qwen3ForCausalLM"}, .convert = "classify"});
  EXPECT_EQ(model.runner, "pooling");
  EXPECT_EQ(model.convert, "classify");
}

TEST(ResolveModelClass, TransformersWrapper_NamesWhatItWraps) {
  EXPECT_EQ(resolve("0.25.1", {.architectures = {"HeliumForCausalLM"}}).class_name,
            "TransformersForCausalLM");
  EXPECT_EQ(resolve("0.25.1", {.architectures = {"LlamaForCausalLM"},
                               .model_impl = "transformers",
                               .nested_text_config = true,
                               .num_experts = 8})
                .class_name,
            "TransformersMultiModalMoEForCausalLM");
  EXPECT_TRUE(resolve("0.25.1", {.architectures = {"HeliumForCausalLM"}}).transformers_backend);
}

TEST(ResolveModelClass, ModelImplVllm_NeverWraps) {
  const ModelClass model =
      resolve("0.25.1", {.architectures = {"HeliumForCausalLM"}, .model_impl = "vllm"});
  ASSERT_TRUE(model.error);
  EXPECT_EQ(model.error->code, "UNKNOWN-ARCH");
}

TEST(ResolveModelClass, ModelImplTransformers_SaysWhatIsMissing) {
  const ModelClass model =
      resolve("0.25.1", {.architectures = {"NobodyKnowsThis"}, .model_impl = "transformers"});
  ASSERT_TRUE(model.error);
  EXPECT_EQ(model.error->code, "TRANSFORMERS-NO-CLASS");
}

TEST(ResolveModelClass, Refusals_NameVersionOrPlugin) {
  const ModelClass removed = resolve("0.25.1", {.architectures = {"BaichuanForCausalLM"}});
  ASSERT_TRUE(removed.error);
  EXPECT_EQ(removed.error->code, "REMOVED-ARCH");
  EXPECT_THAT(removed.error->message, HasSubstr("v0.23.0"));
  const ModelClass moved = resolve("0.25.1", {.architectures = {"BartModel"}});
  ASSERT_TRUE(moved.error);
  EXPECT_EQ(moved.error->code, "OUT-OF-TREE-ARCH");
}

TEST(ResolveModelClass, UnknownName_ListsCloseOnes) {
  const ModelClass model = resolve("0.25.1", {.architectures = {"LamaForCausalML"}});
  ASSERT_TRUE(model.error);
  EXPECT_THAT(model.error->near_matches, Contains("LlamaForCausalLM"));
}

TEST(ResolveModelClass, NoArchitecture_IsRefused) { EXPECT_TRUE(resolve("0.33.0", {}).error); }

TEST(ResolveModelClass, Plugin_OverridesAndAdds) {
  ModelClassQuestion question{.architectures = {"LlamaForCausalLM"}};
  question.registered = {{"LlamaForCausalLM", "mine", "First"},
                         {"LlamaForCausalLM", "mine", "Last"}};
  EXPECT_EQ(resolve("0.25.1", question).class_name, "Last");
  question.architectures = {"MineForCausalLM"};
  question.registered = {{"MineForCausalLM", "mine", "Mine"}};
  EXPECT_EQ(resolve("0.25.1", question).class_name, "Mine");
}

TEST(ModelRegistryTable, EveryHookOfTheNames_IsThere) {
  EXPECT_EQ(built_in_registry("0.25.1").architectures.size(), 356U);
  EXPECT_EQ(built_in_registry("0.33.0").architectures.size(), 415U);
  EXPECT_EQ(built_in_registry("0.25.1").hooks.size(), 37U);
  EXPECT_TRUE(built_in_registry("0.25.1").find("JambaForCausalLM")->info.is_hybrid);
  EXPECT_TRUE(built_in_registry("0.25.1").find("MambaForCausalLM")->info.is_attention_free);
}

}  // namespace
}  // namespace kernelpath::engines::vllm
