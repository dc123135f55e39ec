#include "memory/state.h"

#include "models.h"

#include <gtest/gtest.h>

#include <limits>

namespace kernelpath::memory {
namespace {

using testing::plain_model;
using testing::stated;

// Layers 0, 2, 4 … keep a state.
config::ModelConfig hybrid(std::int64_t layers = 8) {
  config::ModelConfig model = plain_model({.model_type = "nemotron_h", .layers = layers});
  for (std::size_t i = 0; i < model.layers.size(); i += 2) {
    model.layers[i].kind = config::LayerKind::kMamba;
    model.layers[i].has_state = true;
  }
  model.linear_state.emplace();
  model.linear_state->conv_kernel = stated(4);
  model.linear_state->state_size = stated(128);
  model.linear_state->num_heads = stated(64);
  model.linear_state->head_dim = stated(64);
  model.linear_state->num_groups = stated(8);
  model.linear_state->intermediate_size = stated(4096);
  return model;
}

TEST(StateBytes, Mamba2_KeepsWindowAndState) {
  const auto state = state_bytes(hybrid());
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(state->layers, 4);
  EXPECT_EQ(state->conv_bytes, 3 * (4096 + 2 * 8 * 128) * 2);
  EXPECT_EQ(state->state_bytes, 64 * 64 * 128 * 4);
  EXPECT_EQ(state->bytes_per_sequence, 4 * (state->conv_bytes + state->state_bytes));
}

TEST(StateBytes, TensorParallel_DividesHeadsAndGroupsUpwards) {
  const auto state = state_bytes(hybrid(), {.tp = 16});
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(state->conv_bytes, 3 * (4 * 64 + 2 * 1 * 128) * 2);
  EXPECT_EQ(state->state_bytes, 4 * 64 * 128 * 4);
}

TEST(StateBytes, ElementSizes_AreTheCallers) {
  const auto state = state_bytes(hybrid(), {.conv_element_bytes = 4, .state_element_bytes = 2});
  EXPECT_EQ(state->conv_bytes, 3 * (4096 + 2 * 8 * 128) * 4);
  EXPECT_EQ(state->state_bytes, 64 * 64 * 128 * 2);
}

TEST(StateBytes, Mamba1_HasNoGroups) {
  config::ModelConfig model = hybrid();
  model.linear_state->num_heads = {};
  model.linear_state->head_dim = {};
  model.linear_state->num_groups = {};
  model.linear_state->state_size = stated(16);
  const auto state = state_bytes(model);
  EXPECT_EQ(state->conv_bytes, 3 * 4096 * 2);
  EXPECT_EQ(state->state_bytes, 4096 * 16 * 4);
}

TEST(StateBytes, ShortConvolution_KeepsItsWindowOnly) {
  config::ModelConfig model = hybrid();
  model.linear_state.emplace();
  model.linear_state->conv_kernel = stated(3);
  model.linear_state->intermediate_size = stated(2048);
  const auto state = state_bytes(model);
  EXPECT_EQ(state->conv_bytes, 2 * 2048 * 2);
  EXPECT_EQ(state->state_bytes, 0);
}

TEST(StateBytes, KimiDelta_ConvolvesQueriesKeysAndValues) {
  config::ModelConfig model = hybrid();
  model.model_type = {"kimi_linear", {}};
  model.text_model_type = "kimi_linear";
  model.linear_state->num_groups = {};
  model.linear_state->state_size = stated(64);
  const auto state = state_bytes(model);
  EXPECT_EQ(state->conv_bytes, 3 * (3 * 64 * 64) * 2);
}

TEST(StateBytes, NoSizes_GiveASquareStateAHead) {
  config::ModelConfig model = hybrid();
  model.linear_state.reset();
  const auto state = state_bytes(model);
  EXPECT_EQ(state->state_bytes, 32 * 128 * 128 * 4);
}

TEST(StateBytes, HugeSizes_AreAnError) {
  config::ModelConfig model = hybrid();
  model.linear_state->state_size = stated(std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(state_bytes(model).error().code, ErrorCode::kConfigOverflow);
}

TEST(StateBytes, ParallelSizeZero_IsAnError) {
  EXPECT_EQ(state_bytes(hybrid(), {.tp = 0}).error().code, ErrorCode::kUsage);
}

}  // namespace
}  // namespace kernelpath::memory
