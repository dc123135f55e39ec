#include "registry/static_index.h"

#include "registry/config_types.h"

#include <gtest/gtest.h>

namespace kernelpath::registry {
namespace {

StaticIndex zoo() {
  StaticIndex index;
  index.package = "engine.models";
  return index;
}

TEST(IsBuiltIn, ThePackageAndItsModules_AreInside) {
  EXPECT_TRUE(zoo().is_built_in("engine.models"));
  EXPECT_TRUE(zoo().is_built_in("engine.models.llama"));
  EXPECT_TRUE(zoo().is_built_in("engine.models.deep.er"));
}

TEST(IsBuiltIn, NamesThatOnlyBeginAlike_AreOutside) {
  EXPECT_FALSE(zoo().is_built_in("engine.models_custom"));
  EXPECT_FALSE(zoo().is_built_in("engine.models_custom.llama"));
  EXPECT_FALSE(zoo().is_built_in("engine.modelsx"));
  EXPECT_FALSE(zoo().is_built_in("engine"));
  EXPECT_FALSE(zoo().is_built_in("my.engine.models.llama"));
  EXPECT_FALSE(zoo().is_built_in(""));
}

TEST(IndexTable, RepeatedKey_KeepsTheFirstRow) {
  IndexTable table;
  EXPECT_TRUE(table.add("LlamaForCausalLM", "llama"));
  EXPECT_FALSE(table.add("LlamaForCausalLM", "other"));
  ASSERT_NE(table.find("LlamaForCausalLM"), nullptr);
  EXPECT_EQ(*table.find("LlamaForCausalLM"), "llama");
  EXPECT_EQ(table.rows().size(), 1U);
  EXPECT_EQ(table.find("llamaforcausallm"), nullptr);
}

TEST(ConfigTypes, KnownType_IsNeverReplaced) {
  ConfigTypes types;
  EXPECT_TRUE(types.add_if_absent("kimi_k2", "transformers.KimiK2Config"));
  EXPECT_FALSE(types.add_if_absent("kimi_k2", "DeepseekV3Config"));
  EXPECT_EQ(*types.find("kimi_k2"), "transformers.KimiK2Config");
}

TEST(ConfigTypes, UnknownType_IsAdded) {
  ConfigTypes types;
  EXPECT_EQ(types.find("deepseek_v32"), nullptr);
  EXPECT_TRUE(types.add_if_absent("deepseek_v32", "DeepseekV3Config"));
  EXPECT_EQ(*types.find("deepseek_v32"), "DeepseekV3Config");
}

}  // namespace
}  // namespace kernelpath::registry
