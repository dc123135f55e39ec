#include "engines/external_models.h"

#include "engines/trtllm/class_resolution.h"

#include <gtest/gtest.h>

namespace kernelpath::engines {
namespace {

std::vector<std::string> folder(const std::string& name) {
  return {std::string(KERNELPATH_BUILD_DIR) + "/tests/providers/" + name};
}

TEST(LoadExternalModels, SampleProvider_GivesARowForEachRegistration) {
  const auto rows = load_external_models(folder("acme"));
  ASSERT_TRUE(rows) << rows.error().text();
  ASSERT_EQ(rows->size(), 4U);
  EXPECT_EQ((*rows)[0].module, "acme.models");
  EXPECT_EQ((*rows)[0].architecture, "LlamaForCausalLM");
  EXPECT_EQ((*rows)[0].model_class, "AcmeLlama");
  EXPECT_EQ((*rows)[2].architecture, "AcmeVLForConditionalGeneration");
  EXPECT_EQ((*rows)[2].vision_encoder, "AcmeVisionModel");
  EXPECT_EQ((*rows)[2].vision_base_class, "AcmeVisionBase");
  EXPECT_EQ((*rows)[3].speculative_mode, "DFLASH");
  EXPECT_EQ((*rows)[3].draft_builder, "acme_dflash");
}

TEST(LoadExternalModels, ProviderError_IsPassedOn) {
  const auto rows = load_external_models(folder("wrong_abi"));
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().code, ErrorCode::kProviderAbi);
}

// Of a real shared object, the built-in class keeps its slot against a module that claims to lie in
// the built-in package; otherwise the external class wins.
TEST(LoadExternalModels, Resolution_FollowsThePackageBoundary) {
  config::ModelConfig model;
  model.architectures = {"LlamaForCausalLM"};
  Environment environment;
  environment.external_models = *load_external_models(folder("acme"));
  EXPECT_EQ(
      trtllm::resolve_model_class(model, {}, environment, trtllm::built_in_profile()).model_class,
      "AcmeLlama");

  std::vector<std::string> both = folder("acme");
  both.push_back(folder("inside_package")[0]);
  environment.external_models = *load_external_models(both);
  EXPECT_EQ(
      trtllm::resolve_model_class(model, {}, environment, trtllm::built_in_profile()).model_class,
      "AcmeLlama");
}

}  // namespace
}  // namespace kernelpath::engines
