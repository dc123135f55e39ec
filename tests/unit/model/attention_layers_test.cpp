#include "model/attention_layers.h"

#include "config/load.h"
#include "model/classes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace kernelpath::model {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<AttentionLayers> layers_of(const std::string& name, const AttentionOptions& options = {}) {
  const auto config =
      config::load_model(std::string(KERNELPATH_TEST_DATA) + "/checkpoints/" + name);
  const auto family = family_of(*config, "");
  return AttentionLayers::make(*make_spec(*config, **family), options);
}

TEST(AttentionLayers, EveryLayerWithAttention_IsInTheTableByName) {
  const auto layers = layers_of("kimi-linear");  // three states, then one layer of MLA
  ASSERT_TRUE(layers) << layers.error().text();
  EXPECT_THAT(layers->table().names(), ElementsAre("model.layers.3.self_attn"));
  EXPECT_EQ(layers->layer(0), nullptr);
  ASSERT_NE(layers->layer(3), nullptr);
  EXPECT_EQ(layers->layer(3)->backend().name, "FUSED");
}

TEST(AttentionLayers, NamedBackend_ServesAllLayers) {
  const auto layers = layers_of("gemma2", {.backend = "vanilla"});
  ASSERT_TRUE(layers) << layers.error().text();
  EXPECT_EQ(layers->layer(1)->backend().name, "VANILLA");
}

TEST(AttentionLayers, UnknownBackend_IsRefused) {
  const auto layers = layers_of("gemma2", {.backend = "FUSD"});
  ASSERT_FALSE(layers);
  EXPECT_EQ(layers.error().code, ErrorCode::kUsageUnknown);
}

TEST(AttentionLayers, BackendThatCannot_SaysWhy) {
  const auto layers = layers_of("gemma2", {.backend = "FLASHINFER"});
  ASSERT_FALSE(layers);
  EXPECT_EQ(layers.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(layers.error().message, HasSubstr("FLASHINFER: "));
}

std::shared_ptr<const AttentionLayer> any_layer() {
  const attention::LayerRequest request{
      .geometry = {.num_heads = 1, .num_kv_heads = 1, .head_dim = 16, .v_head_dim = 16}};
  auto attention =
      attention::Attention::make(attention::backend_row(attention::BackendId::kVanilla), request);
  return std::make_shared<AttentionLayer>(
      AttentionLayer{.name = "a", .attention = *attention, .kind = 0});
}

TEST(LayerTable, NameOfALivingLayer_GetsASuffix) {
  LayerTable table;
  const auto first = any_layer();
  const auto second = any_layer();
  EXPECT_EQ(table.add("a", first), "a");
  EXPECT_EQ(table.add("a", second), "a.1");
  EXPECT_EQ(table.find("a"), first);
  EXPECT_EQ(table.find("a.1"), second);
}

TEST(LayerTable, LayerThatEnds_IsNotKeptAlive) {
  LayerTable table;
  auto layer = any_layer();
  table.add("a", layer);
  layer.reset();
  EXPECT_EQ(table.find("a"), nullptr);
  const auto next = any_layer();
  EXPECT_EQ(table.add("a", next), "a") << "the name is free again";
}

}  // namespace
}  // namespace kernelpath::model
