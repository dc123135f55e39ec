#include "model/classes.h"

#include "config/load.h"
#include "registry/own_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kernelpath::model {
namespace {

using testing::Contains;

config::ModelConfig with_architecture(const std::string& name) {
  config::ModelConfig config;
  config.architectures = {name};
  return config;
}

std::string provider(const std::string& folder) {
  return std::string(KERNELPATH_BUILD_DIR) + "/tests/providers/" + folder;
}

TEST(Classes, TableOfTheRegistryAndFamilies_AreTheSame) {
  for (const registry::OwnModel& own : registry::own_models()) {
    EXPECT_NE(find_family_of_class(own.class_name), nullptr) << own.class_name;
  }
  for (const Family& family : families()) {
    const auto resolved = resolve_class(with_architecture(std::string(family.class_name)));
    ASSERT_TRUE(resolved) << family.class_name;
    EXPECT_EQ(resolved->class_name, family.class_name);
    EXPECT_TRUE(resolved->module.starts_with(registry::kOwnPackage));
  }
}

TEST(Classes, UnknownArchitecture_NamesNearOnes) {
  const auto resolved = resolve_class(with_architecture("LlamaForCasualLM"));
  ASSERT_FALSE(resolved);
  EXPECT_EQ(resolved.error().code, ErrorCode::kUsageUnknown);
  EXPECT_THAT(resolved.error().near_matches, Contains("LlamaForCausalLM"));
}

TEST(Classes, NoArchitecture_IsMissing) {
  const auto resolved = resolve_class(config::ModelConfig{});
  ASSERT_FALSE(resolved);
  EXPECT_EQ(resolved.error().code, ErrorCode::kConfigMissing);
}

TEST(Classes, ExternalProvider_WinsOverTheBuiltInClass) {
  const std::vector<std::string> folders = {provider("llama_override")};
  const auto llama = resolve_class(with_architecture("LlamaForCausalLM"), folders);
  ASSERT_TRUE(llama) << llama.error().text();
  EXPECT_EQ(llama->class_name, "MistralForCausalLM");
  EXPECT_EQ(llama->module, "override.models");
  const auto other = resolve_class(with_architecture("Qwen3ForCausalLM"), folders);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->class_name, "Qwen3ForCausalLM");
}

TEST(Classes, OfTwoExternalProviders_TheLastOneWins) {
  const std::vector<std::string> ours_last = {provider("acme"), provider("llama_override")};
  const std::vector<std::string> ours_first = {provider("llama_override"), provider("acme")};
  const auto config = with_architecture("LlamaForCausalLM");
  EXPECT_EQ(resolve_class(config, ours_last)->class_name, "MistralForCausalLM");
  EXPECT_EQ(resolve_class(config, ours_first)->class_name, "AcmeLlama");
}

TEST(Classes, ClassThatIsNotInThisBuild_IsRefusedByName) {
  const auto family = family_of(with_architecture("LlamaForCausalLM"), "LlamaModel");
  ASSERT_FALSE(family);
  EXPECT_EQ(family.error().value, "LlamaModel");
}

}  // namespace
}  // namespace kernelpath::model
