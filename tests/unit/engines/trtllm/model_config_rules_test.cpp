#include "engines/trtllm/model_config_rules.h"

#include <gtest/gtest.h>

#include <limits>

namespace kernelpath::engines::trtllm {
namespace {

config::ModelConfig model_of(std::string architecture) {
  config::ModelConfig model;
  model.architectures = {std::move(architecture)};
  model.has_architectures = true;
  return model;
}

config::ModelConfig deepseek_v32() {
  config::ModelConfig model = model_of("DeepseekV32ForCausalLM");
  config::SparseAttention& sparse = model.sparse.emplace();
  sparse.index_n_heads.value = 64;
  sparse.index_head_dim.value = 128;
  sparse.index_topk.value = 2048;
  return model;
}

config::ModelConfig deepseek_v4() {
  config::ModelConfig model = model_of("DeepseekV4ForCausalLM");
  model.num_hidden_layers.value = 4;
  model.sliding_window.value = 128;
  model.sparse.emplace().compress_ratios = {0, 0, 4, 128};
  return model;
}

TEST(IsGeneration, RewardModelsAndEncoders_AreNot) {
  EXPECT_FALSE(model_config_post_init(model_of("LlamaForTextEmbedding"), {}).is_generation);
  EXPECT_TRUE(model_config_post_init(model_of("LlamaForCausalLM"), {}).is_generation);
  ModelConfigOptions encoder_only;
  encoder_only.mm_encoder_only = true;
  EXPECT_FALSE(model_config_post_init(model_of("LlamaForCausalLM"), encoder_only).is_generation);
}

TEST(IsGeneration, NullArchitectures_StayGenerative) {
  config::ModelConfig model;
  model.has_architectures = true;
  model.architectures_null = true;
  EXPECT_TRUE(model_config_post_init(model, {}).is_generation);
}

TEST(ModelConfigDefaults, DtypeMoeTokensAndStrategy_HaveTheirRules) {
  ModelConfigOptions options;
  options.dp_size = 8;
  options.allreduce_strategy = "twoshot";
  config::ModelConfig model = model_of("LlamaForCausalLM");
  const ModelConfigDecision decision = model_config_post_init(model, options);
  EXPECT_EQ(decision.dtype, "bfloat16");
  EXPECT_EQ(decision.dtype_from, "default");
  EXPECT_EQ(decision.moe_max_num_tokens, 65536);
  EXPECT_EQ(decision.allreduce_strategy, "TWOSHOT");
  EXPECT_FALSE(decision.allreduce_strategy_unknown);

  model.dtype.value = "float16";
  options.moe_max_num_tokens = 1024;
  options.allreduce_strategy = "THREESHOT";
  const ModelConfigDecision other = model_config_post_init(model, options);
  EXPECT_EQ(other.dtype, "float16");
  EXPECT_EQ(other.moe_max_num_tokens, 1024);
  EXPECT_EQ(other.allreduce_strategy, "AUTO");
  EXPECT_TRUE(other.allreduce_strategy_unknown);
}

TEST(DsaConfig, DeepseekV32_GetsOneUnasked) {
  const ModelConfigDecision decision = model_config_post_init(deepseek_v32(), {});
  ASSERT_TRUE(decision.sparse);
  EXPECT_EQ(decision.sparse->algorithm, "dsa");
  EXPECT_TRUE(decision.sparse->automatic);
  EXPECT_EQ(decision.sparse->index_topk, 2048);
  EXPECT_FALSE(model_config_post_init(model_of("DeepseekV3ForCausalLM"), {}).sparse);
}

TEST(DsaConfig, UserValues_CountWhereTheyAreSet) {
  ModelConfigOptions options;
  options.sparse = SparseOptions{.algorithm = "dsa",
                                 .index_n_heads = 0,
                                 .index_head_dim = 64,
                                 .index_topk = 512,
                                 .window_size = std::nullopt,
                                 .compress_ratios = {}};
  const ModelConfigDecision decision = model_config_post_init(deepseek_v32(), options);
  EXPECT_FALSE(decision.sparse->automatic);
  EXPECT_EQ(decision.sparse->index_n_heads, 64) << "a user's 0 counts as unset";
  EXPECT_EQ(decision.sparse->index_head_dim, 64);
  EXPECT_EQ(decision.sparse->index_topk, 512);
}

TEST(DsaConfig, CheckpointWithoutIndexer_IsAnError) {
  const auto decision = model_config_post_init(model_of("GlmMoeDsaForCausalLM"), {});
  ASSERT_TRUE(decision.error);
  EXPECT_EQ(decision.error->code, "DSA-NO-INDEXER");
}

TEST(DeepseekV4Config, ZeroRatios_BecomeOneAndMtpLayersArePadded) {
  ModelConfigOptions options;
  options.mtp_layers = 2;
  const ModelConfigDecision decision = model_config_post_init(deepseek_v4(), options);
  EXPECT_EQ(decision.sparse->compress_ratios, (std::vector<std::int64_t>{1, 1, 4, 128, 1, 1}));
  EXPECT_EQ(decision.sparse->window_size, 128) << "sliding_window stands in for window_size";
}

TEST(DeepseekV4Config, LongerCheckpointList_WinsOverTheUsers) {
  ModelConfigOptions options;
  options.sparse.emplace().algorithm = "deepseek_v4";
  options.sparse->compress_ratios = {8, 8};
  options.sparse->window_size = 256;
  ModelConfigDecision decision = model_config_post_init(deepseek_v4(), options);
  EXPECT_EQ(decision.sparse->compress_ratios.size(), 4u);
  EXPECT_EQ(decision.sparse->window_size, 256);
  options.sparse->compress_ratios = {8, 8, 8, 8};
  decision = model_config_post_init(deepseek_v4(), options);
  EXPECT_EQ(decision.sparse->compress_ratios.front(), 8);
}

TEST(DeepseekV4Config, WithoutRatiosAnywhere_IsAnError) {
  config::ModelConfig model = deepseek_v4();
  model.sparse.reset();
  const ModelConfigDecision decision = model_config_post_init(model, {});
  ASSERT_TRUE(decision.error);
  EXPECT_EQ(decision.error->code, "V4-NO-COMPRESS-RATIOS");
  EXPECT_EQ(decision.error->type, "ValueError");
}

TEST(Csa2Config, ModelTypeChoosesIt_UnlessAnotherIsGiven) {
  config::ModelConfig model = model_of("DeepseekV41ForCausalLM");
  model.model_type.value = "deepseek_v41_text";
  EXPECT_EQ(model_config_post_init(model, {}).sparse->algorithm, "csa2");
  ModelConfigOptions options;
  options.sparse.emplace().algorithm = "skip_softmax";
  EXPECT_EQ(model_config_post_init(model, options).sparse->algorithm, "skip_softmax");
  model.model_type.value = "deepseek_v4";
  EXPECT_FALSE(model_config_post_init(model, {}).sparse);
}

MaxSeqLenDecision length(std::optional<std::int64_t> positions, std::string type, double factor) {
  return infer_max_seq_len(MaxSeqLenRequest{
      .max_position_embeddings = positions, .rope_type = std::move(type), .rope_factor = factor});
}

TEST(InferMaxSeqLen, RopeFactor_ScalesAndRoundsUp) {
  EXPECT_EQ(length(4096, "linear", 2.5).max_seq_len, 10240);
  EXPECT_EQ(length(4097, "dynamic", 1.5).max_seq_len, 6146);
  EXPECT_EQ(length(4096, "", 4).max_seq_len, 4096);
  for (const char* type : {"su", "longrope", "llama3", "yarn"}) {
    EXPECT_EQ(length(4096, type, 8).max_seq_len, 4096) << type;
  }
}

TEST(InferMaxSeqLen, MissingLength_Is2048) {
  EXPECT_EQ(length(std::nullopt, "linear", 2).max_seq_len, 4096);
  EXPECT_TRUE(length(std::nullopt, "", 1).from_default);
}

TEST(InferMaxSeqLen, HostileFactor_ChangesNothing) {
  EXPECT_EQ(length(4096, "linear", std::numeric_limits<double>::infinity()).max_seq_len, 4096);
  EXPECT_EQ(length(4096, "linear", -3).max_seq_len, 4096);
  EXPECT_EQ(length(4096, "linear", 1e300).max_seq_len, 4096);
}

}  // namespace
}  // namespace kernelpath::engines::trtllm
