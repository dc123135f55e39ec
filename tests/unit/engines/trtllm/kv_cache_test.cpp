#include "engines/trtllm/kv_cache.h"

#include <gtest/gtest.h>

#include <limits>

namespace kernelpath::engines::trtllm {
namespace {

KvGeometry llama3_8b() {
  KvGeometry geometry;
  geometry.head_dim = 128;
  geometry.num_layers = 32;
  geometry.num_kv_heads = 8;
  return geometry;
}

KvGeometry deepseek_v3() {
  KvGeometry geometry;
  geometry.mla = true;
  geometry.kv_lora_rank = 512;
  geometry.qk_rope_head_dim = 64;
  geometry.num_layers = 61;
  return geometry;
}

TEST(PipelineLayers, Remainder_GoesToTheFirstStages) {
  EXPECT_EQ(pipeline_layers(61, 4, 0).size(), 16);
  EXPECT_EQ(pipeline_layers(61, 4, 1).first, 16);
  EXPECT_EQ(pipeline_layers(61, 4, 3).size(), 15);
  EXPECT_EQ(pipeline_layers(61, 4, 3).last, 61);
  EXPECT_EQ(pipeline_layers(2, 4, 3).size(), 0);
}

TEST(KvBytesPerToken, TensorParallelAboveKvHeads_IsUnderestimated) {
  KvGeometry geometry = llama3_8b();
  geometry.tp = 16;
  const KvBytes bytes = kv_bytes_per_token(geometry).value();
  EXPECT_EQ(bytes.estimate_bytes, 8192);
  EXPECT_EQ(bytes.runtime_total_bytes(), 16384);
  EXPECT_TRUE(bytes.kv_heads_replicated);
  EXPECT_FALSE(bytes.estimate_equals_runtime());
  geometry.attention_dp = true;
  EXPECT_EQ(kv_bytes_per_token(geometry)->estimate_bytes, 131072);
  EXPECT_TRUE(kv_bytes_per_token(geometry)->estimate_equals_runtime());
}

TEST(KvBytesPerToken, KvHeadsThatDoNotDivide_AreRoundedUpAtRunTime) {
  KvGeometry geometry = llama3_8b();
  geometry.num_kv_heads = 6;
  geometry.tp = 4;
  const KvBytes bytes = kv_bytes_per_token(geometry).value();
  EXPECT_EQ(bytes.estimate_bytes, 2 * 32 * (128 * 6 / 4) * 2);
  EXPECT_EQ(bytes.runtime_data_bytes, 2 * 32 * 2 * 128 * 2);
}

TEST(KvBytesPerToken, Mla_IsNeverDividedByTp) {
  KvGeometry geometry = deepseek_v3();
  geometry.tp = 16;
  EXPECT_EQ(kv_bytes_per_token(geometry)->runtime_data_bytes, 61 * 576 * 2);
  EXPECT_TRUE(kv_bytes_per_token(geometry)->estimate_equals_runtime());
  geometry.dtype = DataType::kFp8;
  geometry.pp = 4;
  geometry.pp_rank = 3;
  EXPECT_EQ(kv_bytes_per_token(geometry)->runtime_data_bytes, 15 * 576);
}

TEST(KvBytesPerToken, NullRank_IsTheEnginesTypeError) {
  KvGeometry geometry = deepseek_v3();
  geometry.kv_lora_rank = std::nullopt;
  EXPECT_EQ(kv_bytes_per_token(geometry)->error->code, "KV-MLA-RANK-NULL");
}

TEST(KvBytesPerToken, Nvfp4_RoundsInTheEstimateAndAssertsAtRunTime) {
  KvGeometry geometry;
  geometry.head_dim = 3;
  geometry.num_layers = 1;
  geometry.num_kv_heads = 1;
  geometry.dtype = DataType::kNvfp4;
  const KvBytes odd = kv_bytes_per_token(geometry).value();
  EXPECT_EQ(odd.estimate_bytes, 3 + 1);  // 6 elements: 3 bytes of data, 1 of scales
  EXPECT_EQ(odd.error->code, "NVFP4-INDIVISIBLE");
  EXPECT_EQ(odd.error->type, "AssertionError");
  EXPECT_FALSE(odd.estimate_equals_runtime());
  geometry.head_dim = 8;
  const KvBytes even = kv_bytes_per_token(geometry).value();
  EXPECT_FALSE(even.error);
  EXPECT_EQ(even.runtime_data_bytes, 8);
  EXPECT_EQ(even.runtime_scale_bytes, 1);
}

TEST(KvBytesPerToken, ListOfKvHeads_IsAveragedByTheEstimate) {
  KvGeometry geometry = llama3_8b();
  geometry.num_layers = 4;
  geometry.kv_heads_per_layer = {8, 8, 4, 2};
  geometry.pp = 2;
  geometry.pp_rank = 1;
  const KvBytes bytes = kv_bytes_per_token(geometry).value();
  EXPECT_EQ(bytes.estimate_bytes, 2 * 2 * 704 * 2);  // 704 = 128 × 5.5
  EXPECT_EQ(bytes.runtime_data_bytes, 2 * (4 + 2) * 128 * 2);
  geometry.kv_heads_per_layer.pop_back();
  EXPECT_EQ(kv_bytes_per_token(geometry)->error->code, "KV-HEADS-LIST-LENGTH");
}

TEST(KvBytesPerToken, StageWithoutLayers_StillGetsOne) {
  KvGeometry geometry = llama3_8b();
  geometry.num_layers = 2;
  geometry.pp = 4;
  geometry.pp_rank = 3;
  const KvBytes bytes = kv_bytes_per_token(geometry).value();
  EXPECT_EQ(bytes.estimate_bytes, 4096);
  EXPECT_EQ(bytes.runtime_total_bytes(), 4096);
}

TEST(KvBytesPerToken, Fp32Cache_IsBudgetedAs16Bit) {
  KvGeometry geometry = llama3_8b();
  geometry.dtype = DataType::kFp32;
  EXPECT_EQ(kv_bytes_per_token(geometry)->estimate_bytes, 131072);
  EXPECT_EQ(kv_bytes_per_token(geometry)->runtime_data_bytes, 262144);
}

TEST(KvBytesPerToken, HostileSizes_AreErrors) {
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  KvGeometry geometry = llama3_8b();
  geometry.head_dim = kHuge;
  EXPECT_EQ(kv_bytes_per_token(geometry).error().code, ErrorCode::kConfigOverflow);
  geometry.kv_heads_per_layer.assign(32, kHuge);
  EXPECT_EQ(kv_bytes_per_token(geometry).error().code, ErrorCode::kConfigOverflow);
  geometry = llama3_8b();
  geometry.head_dim = 0;
  EXPECT_EQ(kv_bytes_per_token(geometry).error().code, ErrorCode::kConfigValue);
  geometry = llama3_8b();
  geometry.pp_rank = 1;
  EXPECT_EQ(kv_bytes_per_token(geometry).error().code, ErrorCode::kConfigValue);
  geometry = deepseek_v3();
  geometry.kv_lora_rank = kHuge;
  EXPECT_EQ(kv_bytes_per_token(geometry).error().code, ErrorCode::kConfigOverflow);
}

config::ModelConfig hybrid() {
  config::ModelConfig model;
  model.num_hidden_layers.value = 4;
  model.num_attention_heads.value = 32;
  model.head_dim.value = 128;
  model.layers.resize(4);
  model.layers[0].kind = config::LayerKind::kMamba;
  model.layers[1].kind = config::LayerKind::kSliding;
  model.layers[2].kind = config::LayerKind::kNone;
  return model;
}

TEST(KvGeometryOfModel, HybridModel_CountsAttentionLayersOnly) {
  config::ModelConfig model = hybrid();
  KvDeployment deployment;
  deployment.tp = 2;
  const KvGeometry geometry = kv_geometry(model, deployment).value();
  EXPECT_EQ(geometry.num_layers, 2);
  EXPECT_EQ(geometry.num_kv_heads, 32) << "heads where no KV heads are stated";
  EXPECT_EQ(geometry.tp, 2);
  model.num_key_value_heads.value = 8;
  EXPECT_EQ(kv_geometry(model, deployment)->num_kv_heads, 8);
}

TEST(KvGeometryOfModel, MissingHeadDim_IsNamed) {
  config::ModelConfig model = hybrid();
  model.head_dim.value.reset();
  const auto geometry = kv_geometry(model, {});
  ASSERT_FALSE(geometry);
  EXPECT_EQ(geometry.error().code, ErrorCode::kConfigMissing);
  EXPECT_NE(geometry.error().message.find("head_dim"), std::string::npos);
}

TEST(KvGeometryOfModel, FieldKvLoraRank_MakesItMla) {
  config::ModelConfig model = hybrid();
  model.has_kv_lora_rank = true;
  EXPECT_EQ(kv_bytes_per_token(kv_geometry(model, {}).value())->error->code, "KV-MLA-RANK-NULL");
  model.mla.emplace();
  model.mla->kv_lora_rank.value = 512;
  model.mla->qk_rope_head_dim.value = 64;
  EXPECT_EQ(kv_bytes_per_token(kv_geometry(model, {}).value())->runtime_data_bytes, 2 * 576 * 2);
}

KvPoolRequest pool_request() {
  KvPoolRequest request;
  request.total_bytes = 80'000'000'000;
  request.peak_bytes = 20'000'000'000;
  request.estimate_bytes_per_token = 8192;
  request.runtime_bytes_per_token = 16384;
  return request;
}

TEST(KvPool, Budget_IsFractionOfWhatIsFree) {
  const KvPool pool = kv_pool(pool_request()).value();
  EXPECT_EQ(pool.budget_bytes, 54'000'000'000);
  EXPECT_EQ(pool.tokens, 54'000'000'000 / 8192);
  EXPECT_EQ(pool.blocks, pool.tokens / 32);
  EXPECT_EQ(pool.pool_bytes, pool.blocks * 32 * 16384);
  KvPoolRequest probed = pool_request();
  probed.probe_bytes = 10'000'000'000;
  EXPECT_EQ(kv_pool(probed)->budget_bytes, 63'000'000'000);
}

TEST(KvPool, MaxTokens_LimitsUnlessThereAreSeveralWindows) {
  KvPoolRequest request = pool_request();
  request.max_tokens = 1000;
  EXPECT_EQ(kv_pool(request)->tokens, 1000);
  EXPECT_EQ(kv_pool(request)->blocks, 31);
  EXPECT_TRUE(kv_pool(request)->limited_by_max_tokens);
  request.distinct_windows = 2;
  EXPECT_GT(kv_pool(request)->tokens, 1000);
  EXPECT_TRUE(kv_pool(request)->several_windows);
}

TEST(KvPool, FractionOfOne_IsAnAssertion) {
  KvPoolRequest request = pool_request();
  request.free_gpu_memory_fraction = 1.0;
  EXPECT_EQ(kv_pool(request)->error->code, "KV-FRACTION");
  request.free_gpu_memory_fraction = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(kv_pool(request)->error->code, "KV-FRACTION");
  request.free_gpu_memory_fraction = 0.0;
  EXPECT_EQ(kv_pool(request)->tokens, 0);
}

TEST(KvPool, WeightsThatDoNotFit_LeaveNothing) {
  KvPoolRequest request = pool_request();
  request.peak_bytes = 90'000'000'000;
  EXPECT_EQ(kv_pool(request)->blocks, 0);
}

TEST(SkipsProfilingRun, EachReason_SufficesAlone) {
  EXPECT_FALSE(skips_profiling_run("TRTLLM", false, 1));
  EXPECT_TRUE(skips_profiling_run("vanilla", false, 1));
  EXPECT_TRUE(skips_profiling_run("TRTLLM", true, 1));
  EXPECT_TRUE(skips_profiling_run("TRTLLM", false, 2));
}

}  // namespace
}  // namespace kernelpath::engines::trtllm
