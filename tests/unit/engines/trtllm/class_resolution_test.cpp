#include "engines/trtllm/class_resolution.h"

#include "engines/trtllm/model_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelpath::engines::trtllm {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// A registry over the embedded profile, as fresh as a new process.
struct Fresh {
  explicit Fresh(ModuleOverrides overrides = {})
      : loader(built_in_profile(), std::move(overrides)) {}

  ProfileLoader loader;
  registry::Registry registry{built_in_profile().index, loader};
  ClassResolver resolver{built_in_profile(), registry};
};

std::string class_of(const ClassAnswer& answer) {
  return answer.provider ? answer.provider->name : "";
}

ClassInput eagle3(std::string architecture) {
  return {.architectures = {std::move(architecture)}, .has_draft_vocab_size = true};
}

config::ModelConfig model(std::vector<std::string> architectures) {
  config::ModelConfig out;
  out.architectures = std::move(architectures);
  return out;
}

TEST(ResolveClass, OnlyTheFirstArchitecture_IsRead) {
  Fresh fresh;
  EXPECT_EQ(class_of(fresh.resolver.resolve_class(
                {.architectures = {"MixtralForCausalLM", "LlamaForCausalLM"}}, {})),
            "MixtralForCausalLM");
}

TEST(ResolveClass, DraftVocabSize_RewritesWhateverTheSpelling) {
  for (const char* name : {"Eagle3LlamaForCausalLM", "LlamaForCausalLMEagle3", "LlamaForCausalLM",
                           "Eagle3LlamaEagle3ForCausalLM"}) {
    EXPECT_EQ(class_of(Fresh().resolver.resolve_class(eagle3(name), {})), "Eagle3ForCausalLM")
        << name;
  }
}

TEST(ResolveClass, RewrittenNamesThatNobodyRegisters_GiveNoClass) {
  for (const char* name : {"EAGLE3LlamaForCausalLM", "Eagle3DeepSeekV3ForCausalLM",
                           "Qwen3ForCausalLM", "eagle3LlamaForCausalLM"}) {
    const ClassAnswer answer = Fresh().resolver.resolve_class(eagle3(name), {});
    EXPECT_FALSE(answer.provider) << name;
    EXPECT_FALSE(answer.error) << name;
  }
}

TEST(ResolveClass, EncoderOnly_ComesBeforeTheRewrite) {
  const ClassAnswer answer = Fresh().resolver.resolve_class(
      eagle3("Qwen3VLForConditionalGeneration"), {.mm_encoder_only = true});
  EXPECT_TRUE(answer.is_vision_encoder);
  EXPECT_EQ(class_of(answer), "Qwen3VisionModelBase");
  EXPECT_EQ(answer.provider->base_class, "Qwen3VisionModel");
}

TEST(FromConfig, UnknownName_IsAnErrorWithTheOriginalName) {
  const ClassAnswer answer = Fresh().resolver.from_config(eagle3("Qwen3ForCausalLM"), {});
  ASSERT_TRUE(answer.error);
  EXPECT_EQ(answer.error->type, "ValueError");
  EXPECT_EQ(answer.error->code, "UNKNOWN-ARCH");
  EXPECT_EQ(answer.error->subject, "Qwen3ForCausalLM");
}

TEST(FromConfig, EncoderOnly_BuildsTheEncoderOrRaises) {
  const ClassAnswer built = Fresh().resolver.from_config(
      {.architectures = {"Qwen2VLForConditionalGeneration"}}, {.mm_encoder_only = true});
  EXPECT_TRUE(built.is_vision_encoder);
  EXPECT_EQ(class_of(built), "Qwen2VisionModelBase");
  const ClassAnswer none = Fresh().resolver.from_config(
      {.architectures = {"T5ForConditionalGeneration"}}, {.mm_encoder_only = true});
  EXPECT_EQ(none.error->code, "UNKNOWN-MM-ENCODER");
  EXPECT_EQ(Fresh().resolver.from_config({}, {.mm_encoder_only = true}).error->code,
            "NO-ARCHITECTURES");
}

TEST(FromConfig, MissingDependencyInTheProvider_IsNotAnUnknownArchitecture) {
  ModuleOverrides overrides;
  overrides.broken["tensorrt_llm._torch.models.modeling_llama"] = {
      .kind = registry::FailureKind::kModuleNotFound, .name = "flashinfer"};
  const ClassAnswer answer =
      Fresh(overrides).resolver.from_config({.architectures = {"LlamaForCausalLM"}}, {});
  ASSERT_TRUE(answer.error);
  EXPECT_EQ(answer.error->type, "ModuleNotFoundError");
  EXPECT_EQ(answer.error->missing_module, "flashinfer");
}

TEST(FromConfig, DeclaredModuleWithoutItsParentPackage_FailsOnTheParent) {
  Fresh fresh;
  fresh.registry.declare({{"LlamaForCausalLM", "ghost.models.llama"}});
  const ClassAnswer answer =
      fresh.resolver.from_config({.architectures = {"LlamaForCausalLM"}}, {});
  ASSERT_TRUE(answer.error);
  EXPECT_EQ(answer.error->code, "MISSING-DEPENDENCY");
  EXPECT_EQ(answer.error->missing_module, "ghost");
}

TEST(GetModelArchitecture, MissingGemma4_HasItsOwnHint) {
  for (const char* name : {"Gemma4ForCausalLM", "Gemma4ForConditionalGeneration",
                           "Gemma4UnifiedForConditionalGeneration"}) {
    ModuleOverrides overrides;
    for (const char* module : {"modeling_gemma4", "modeling_gemma4mm", "modeling_gemma4_unified"}) {
      const std::string full = built_in_profile().index.full_name(module);
      overrides.broken[full] = {.kind = registry::FailureKind::kModuleNotFound, .name = full};
    }
    const ClassAnswer answer =
        Fresh(overrides).resolver.get_model_architecture({.architectures = {name}});
    ASSERT_TRUE(answer.error) << name;
    EXPECT_EQ(answer.error->code, "GEMMA4-NEEDS-NEWER-TRANSFORMERS") << name;
  }
}

TEST(GetModelArchitecture, Name_IsNotRewritten) {
  EXPECT_EQ(class_of(Fresh().resolver.get_model_architecture(eagle3("LlamaForCausalLM"))),
            "LlamaForCausalLM");
}

TEST(ResolveModelClass, KnownModel_HasClassModuleAndSourcedSteps) {
  const ClassResolution found =
      resolve_model_class(model({"LlamaForCausalLM"}), {}, {}, built_in_profile());
  EXPECT_FALSE(found.error);
  EXPECT_EQ(found.model_class, "LlamaForCausalLM");
  EXPECT_EQ(found.module, "tensorrt_llm._torch.models.modeling_llama");
  EXPECT_EQ(found.established_by, "class-index");
  ASSERT_FALSE(found.steps.empty());
  for (const Step& step : found.steps) {
    EXPECT_TRUE(step.rule.starts_with("TRT-")) << step.rule;
    EXPECT_FALSE(step.reason.empty()) << step.rule;
    EXPECT_EQ(step.reason.find('{'), std::string::npos) << step.reason;
    EXPECT_FALSE(step.source.file.empty()) << step.rule;
    EXPECT_FALSE(step.source.version.empty()) << step.rule;
  }
}

TEST(ResolveModelClass, ClassWithoutAnEstablishedName_HasItsModuleOnly) {
  const ClassResolution found =
      resolve_model_class(model({"Qwen3ForTextEmbedding"}), {}, {}, built_in_profile());
  EXPECT_FALSE(found.error);
  EXPECT_EQ(found.model_class, "");
  EXPECT_EQ(found.module, "tensorrt_llm._torch.models.modeling_qwen3");
  EXPECT_EQ(found.established_by, "not established");
}

TEST(ResolveModelClass, UnknownArchitecture_NamesCloseMatchesAndEndsInAnErrorStep) {
  const ClassResolution found =
      resolve_model_class(model({"LlamaForCasualLM"}), {}, {}, built_in_profile());
  ASSERT_TRUE(found.error);
  EXPECT_EQ(found.error->code, "UNKNOWN-ARCH");
  EXPECT_THAT(found.error->near_matches, Contains("LlamaForCausalLM"));
  EXPECT_EQ(found.steps.back().rule, "TRT-UNKNOWN-ARCH");
  EXPECT_EQ(found.steps.back().severity, Severity::kError);
}

TEST(ResolveModelClass, ArchitectureSeenOutsideTheIndex_SaysSo) {
  const ClassResolution found =
      resolve_model_class(model({"DeepseekV41ForCausalLM"}), {}, {}, built_in_profile());
  ASSERT_TRUE(found.error);
  EXPECT_THAT(found.error->message, HasSubstr("outside the index"));
}

TEST(ResolveModelClass, ExternalProvider_WinsOverTheBuiltInClass) {
  Environment environment;
  environment.external_models = {
      {.module = "acme.models", .architecture = "LlamaForCausalLM", .model_class = "AcmeLlama"},
      {.module = "other.models", .architecture = "LlamaForCausalLM", .model_class = "OtherLlama"}};
  const ClassResolution found =
      resolve_model_class(model({"LlamaForCausalLM"}), {}, environment, built_in_profile());
  EXPECT_EQ(found.model_class, "OtherLlama");
  EXPECT_EQ(found.module, "other.models");
  EXPECT_EQ(found.established_by, "");
}

TEST(ResolveModelClass, ExternalVisionEncoder_ServesEncoderOnlyMode) {
  Environment environment;
  environment.external_models = {
      {.module = "acme.models", .architecture = "NewVL", .model_class = "AcmeVL"},
      {.module = "acme.models",
       .architecture = "NewVL",
       .vision_encoder = "AcmeViT",
       .vision_base_class = "AcmeBase"}};
  const ClassResolution found = resolve_model_class(model({"NewVL"}), {.mm_encoder_only = true},
                                                    environment, built_in_profile());
  EXPECT_TRUE(found.is_vision_encoder);
  EXPECT_EQ(found.model_class, "AcmeViT");
  EXPECT_EQ(found.vision_base_class, "AcmeBase");
}

}  // namespace
}  // namespace kernelpath::engines::trtllm
