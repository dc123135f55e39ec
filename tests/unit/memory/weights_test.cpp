#include "memory/weights.h"

#include "models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>

namespace kernelpath::memory {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using testing::Plain;
using testing::plain_model;
using testing::stated;

constexpr std::int64_t kLlama8B = 8'030'261'248;

const WeightItem* find_item(const WeightLedger& ledger, Part part) {
  for (const WeightItem& item : ledger.items) {
    if (item.part == part) return &item;
  }
  return nullptr;
}

config::ModelConfig quantised(const std::string& algo, const std::string& method) {
  config::ModelConfig model = plain_model();
  model.quantization.algo = {algo, {}};
  model.quantization.method = {method, {}};
  return model;
}

// Elements of the linear layers of Llama-3.1-8B's decoder: what quantisation is about.
constexpr std::int64_t kLinear8B =
    32LL * (2LL * 4096 * 4096 + 2LL * 1024 * 4096 + 3LL * 4096 * 14336);
constexpr std::int64_t kRest8B = kLlama8B - kLinear8B;

TEST(CountWeights, Llama8B_HasThePublishedParameterCount) {
  const auto ledger = count_weights(plain_model());
  ASSERT_TRUE(ledger.has_value()) << ledger.error().text();
  EXPECT_EQ(ledger->parameters, kLlama8B);
  EXPECT_EQ(ledger->bytes, 2 * kLlama8B);
  EXPECT_EQ(ledger->rank_bytes, 2 * kLlama8B);
  EXPECT_EQ(ledger->source, "geometry");
  EXPECT_TRUE(ledger->exact);
  EXPECT_TRUE(ledger->reasons.empty());
}

TEST(CountWeights, Items_AddUpToTheTotal) {
  const auto ledger = count_weights(plain_model());
  ASSERT_TRUE(ledger.has_value());
  std::int64_t parameters = 0;
  std::int64_t bytes = 0;
  for (const WeightItem& item : ledger->items) {
    parameters += item.parameters;
    bytes += item.bytes;
  }
  EXPECT_EQ(parameters, ledger->parameters);
  EXPECT_EQ(bytes, ledger->bytes);
}

TEST(CountWeights, TiedEmbedding_HasNoOutputProjection) {
  const auto ledger = count_weights(plain_model({.tied = true}));
  ASSERT_TRUE(ledger.has_value());
  EXPECT_EQ(ledger->parameters, kLlama8B - 128256LL * 4096);
  EXPECT_EQ(find_item(*ledger, Part::kLmHead), nullptr);
}

TEST(CountWeights, TiedEmbeddingOverStages_IsHeldTwice) {
  const auto ledger = count_weights(plain_model({.tied = true}), {.parallel = {.pp = 2}});
  ASSERT_TRUE(ledger.has_value());
  const std::int64_t sum =
      std::accumulate(ledger->stage_bytes.begin(), ledger->stage_bytes.end(), std::int64_t{0});
  EXPECT_EQ(sum, ledger->bytes + 2 * 128256LL * 4096);
}

TEST(CountWeights, Dtype_DecidesTheBytes) {
  config::ModelConfig model = plain_model();
  EXPECT_EQ(count_weights(model, {.dtype = "float32"})->bytes, 4 * kLlama8B);
  model.dtype = {};
  const auto unknown = count_weights(model);
  EXPECT_EQ(unknown->bytes, 2 * kLlama8B);
  EXPECT_FALSE(unknown->exact);
  EXPECT_THAT(unknown->reasons, Contains(HasSubstr("2 bytes")));
}

TEST(CountWeights, TensorParallel_DividesMatricesAndKeepsNorms) {
  const auto whole = count_weights(plain_model());
  const auto rank = count_weights(plain_model(), {.parallel = {.tp = 4}});
  ASSERT_TRUE(rank.has_value());
  const std::int64_t norms = find_item(*whole, Part::kNorm)->bytes;
  EXPECT_EQ(rank->rank_bytes, (whole->bytes - norms) / 4 + norms);
  EXPECT_EQ(rank->bytes, whole->bytes);
}

TEST(CountWeights, MoreRanksThanKvHeads_ReplicateKvHeads) {
  const auto eight = count_weights(plain_model(), {.parallel = {.tp = 8}});
  const auto sixteen = count_weights(plain_model(), {.parallel = {.tp = 16}});
  const std::int64_t kv_eight = 32LL * 2 * 128 * 4096 * 2;
  const std::int64_t q_and_o = 32LL * 2 * 4096 * 4096 * 2;
  EXPECT_EQ(find_item(*eight, Part::kAttention)->rank_bytes, q_and_o / 8 + kv_eight);
  EXPECT_EQ(find_item(*sixteen, Part::kAttention)->rank_bytes, q_and_o / 16 + kv_eight);
}

TEST(CountWeights, AttentionDataParallel_ReplicatesAttention) {
  const auto ledger = count_weights(plain_model(), {.parallel = {.tp = 4, .attention_dp = true}});
  const WeightItem* attention = find_item(*ledger, Part::kAttention);
  EXPECT_EQ(attention->rank_bytes, attention->bytes);
  const WeightItem* mlp = find_item(*ledger, Part::kMlp);
  EXPECT_EQ(mlp->rank_bytes, mlp->bytes / 4);
}

TEST(CountWeights, Pipeline_FirstStagesGetOneLayerMore) {
  const auto ledger = count_weights(plain_model({.layers = 10}), {.parallel = {.pp = 4}});
  ASSERT_TRUE(ledger.has_value());
  ASSERT_EQ(ledger->stage_bytes.size(), 4U);
  const std::int64_t layer = ledger->stage_bytes[1] / 3;
  const std::int64_t embedding = 2 * 128256LL * 4096;
  EXPECT_EQ(ledger->stage_bytes[0], 3 * layer + embedding);
  EXPECT_EQ(ledger->stage_bytes[1], 3 * layer);
  EXPECT_EQ(ledger->stage_bytes[2], 2 * layer);
  EXPECT_EQ(ledger->stage_bytes[3], 2 * layer + embedding + 2 * 4096);
  EXPECT_EQ(ledger->rank_bytes, ledger->stage_bytes[0]);
}

config::ModelConfig mixture() {
  config::ModelConfig model = plain_model({.model_type = "mixtral", .vocab = 32000});
  model.moe.emplace();
  model.moe->num_experts = stated(8);
  model.moe->moe_intermediate_size = stated(14336);
  for (config::Layer& layer : model.layers) layer.moe = true;
  return model;
}

TEST(CountWeights, Mixtral8x7B_HasThePublishedParameterCount) {
  const auto ledger = count_weights(mixture());
  ASSERT_TRUE(ledger.has_value());
  EXPECT_EQ(ledger->parameters, 46'702'792'704);
  EXPECT_TRUE(ledger->exact);
}

TEST(CountWeights, ExpertParallel_DistributesWholeExperts) {
  const auto whole = count_weights(mixture());
  const std::int64_t experts = find_item(*whole, Part::kExperts)->bytes;
  const auto ep4 = count_weights(mixture(), {.parallel = {.tp = 4, .ep = 4}});
  const auto ep2 = count_weights(mixture(), {.parallel = {.tp = 4, .ep = 2}});
  EXPECT_EQ(find_item(*ep4, Part::kExperts)->rank_bytes, experts / 4);
  EXPECT_EQ(find_item(*ep2, Part::kExperts)->rank_bytes, experts / 4);
  // 3 groups: one has 3 of the 8 experts.
  const auto ep3 = count_weights(mixture(), {.parallel = {.ep = 3}});
  EXPECT_EQ(find_item(*ep3, Part::kExperts)->rank_bytes, experts / 8 * 3);
}

TEST(CountWeights, Fp8_StoresLinearLayersInOneByte) {
  const auto ledger = count_weights(quantised("FP8", "modelopt"));
  ASSERT_TRUE(ledger.has_value());
  EXPECT_EQ(ledger->parameters, kLlama8B);
  const std::int64_t scales = 32LL * 7 * 8;
  EXPECT_EQ(ledger->bytes, kLinear8B + 2 * kRest8B + scales);
}

TEST(CountWeights, Fp8Blocks_AddAScaleABlock) {
  config::ModelConfig model = quantised("FP8_BLOCK_SCALES", "fp8");
  model.quantization.weight_block_size = {128, 128};
  const auto ledger = count_weights(model);
  EXPECT_EQ(ledger->bytes, kLinear8B + 2 * kRest8B + kLinear8B / (128 * 128) * 4);
}

TEST(CountWeights, Nvfp4_AddsAByteForSixteen) {
  const auto ledger = count_weights(quantised("NVFP4", "modelopt"));
  const std::int64_t tensors = 32LL * 7;
  EXPECT_EQ(ledger->bytes, kLinear8B / 2 + kLinear8B / 16 + tensors * 8 + 2 * kRest8B);
}

TEST(CountWeights, Awq_AddsScalesAndZerosAGroup) {
  config::ModelConfig model = quantised("W4A16_AWQ", "awq");
  model.quantization.group_size = stated(128);
  const auto ledger = count_weights(model);
  const std::int64_t groups = kLinear8B / 128;
  EXPECT_EQ(ledger->bytes, kLinear8B / 2 + groups * 2 + groups / 2 + 2 * kRest8B);
}

TEST(CountWeights, ExcludedModules_StayAtTheDtype) {
  config::ModelConfig model = quantised("FP8", "modelopt");
  const std::int64_t all = count_weights(model)->bytes;
  const std::int64_t down = 4096LL * 14336;
  model.quantization.exclude_modules = {"lm_head", "model.layers.3.mlp.down_proj"};
  EXPECT_EQ(count_weights(model)->bytes, all + down - 8);
  model.quantization.exclude_modules = {"model.layers.3*"};  // layers 3, 30 and 31
  const std::int64_t layer = kLinear8B / 32;
  EXPECT_EQ(count_weights(model)->bytes, all + 3 * (layer - 7 * 8));
  model.quantization.exclude_modules = {"re:.*\\.mlp\\.(gate|up)_proj$"};
  EXPECT_EQ(count_weights(model)->bytes, all + 32 * 2 * (down - 8));
  model.quantization.exclude_modules = {"vision_tower.layers.3.mlp", "mtp.layers.0*"};
  EXPECT_EQ(count_weights(model)->bytes, all);
}

TEST(CountWeights, HostileExclusions_AreCutOffAndSaid) {
  config::ModelConfig model = quantised("FP8", "modelopt");
  model.quantization.exclude_modules.assign(100'000, "re:(a(b))");
  const auto ledger = count_weights(model);
  ASSERT_TRUE(ledger.has_value());
  EXPECT_FALSE(ledger->exact);
  EXPECT_LT(ledger->reasons.size(), 10U);
  EXPECT_THAT(ledger->reasons, Contains(HasSubstr("not understood")));
  EXPECT_THAT(ledger->reasons, Contains(HasSubstr("more of this kind")));
}

TEST(CountWeights, MixedPrecision_FollowsTheModules) {
  config::ModelConfig model = quantised("MIXED_PRECISION", "modelopt");
  model.quantization.layer_algos = {{"model.layers.0.self_attn.q_proj", "FP8"},
                                    {"model.layers.1.mlp", "NVFP4"},
                                    {"lm_head", "FP8"}};
  const std::int64_t q = 4096LL * 4096;
  const std::int64_t mlp = 3LL * 4096 * 14336;
  const std::int64_t head = 128256LL * 4096;
  EXPECT_EQ(count_weights(model)->bytes,
            2 * kLlama8B - q + 8 - 2 * mlp + mlp / 2 + mlp / 16 + 3 * 8 - head + 8);
}

TEST(CountWeights, UnknownQuantisation_IsAnEstimateAtTheDtype) {
  const auto ledger = count_weights(quantised("W3A5_SECRET", "secret"));
  EXPECT_EQ(ledger->bytes, 2 * kLlama8B);
  EXPECT_THAT(ledger->reasons, Contains(HasSubstr("W3A5_SECRET")));
  EXPECT_FALSE(ledger->exact);
}

TEST(CountWeights, UnknownFamily_IsAnEstimateLikeLlama) {
  const auto ledger = count_weights(plain_model({.model_type = "nobody_knows"}));
  EXPECT_EQ(ledger->parameters, kLlama8B);
  EXPECT_FALSE(ledger->exact);
  EXPECT_THAT(ledger->reasons, Contains(HasSubstr("nobody_knows")));
}

TEST(CountWeights, Files_WinOverGeometry) {
  config::ModelConfig model = plain_model();
  model.weights.emplace();
  model.weights->total_bytes = stated(20'000'000'000);
  model.weights->from_headers = true;
  const auto ledger = count_weights(model, {.parallel = {.pp = 2}});
  EXPECT_EQ(ledger->bytes, 20'000'000'000);
  EXPECT_EQ(ledger->source, "safetensors headers");
  EXPECT_NEAR(static_cast<double>(ledger->stage_bytes[0] + ledger->stage_bytes[1]), 2e10, 2.0);
  model.weights->from_headers = false;
  EXPECT_EQ(count_weights(model)->source, "index");
  model.weights->missing_shards = {"model-00002-of-00002.safetensors"};
  EXPECT_EQ(count_weights(model)->source, "geometry");
}

TEST(CountWeights, MtpLayers_AreLoadedOnRequest) {
  config::ModelConfig model = mixture();
  const auto without = count_weights(model);
  model.draft.num_nextn_predict_layers = stated(1);
  const auto idle = count_weights(model);
  const auto loaded = count_weights(model, {.load_mtp = true});
  EXPECT_EQ(idle->bytes, without->bytes);
  EXPECT_EQ(idle->parameters, without->parameters);
  const std::int64_t layer = (without->parameters - 2 * 32000LL * 4096 - 4096) / 32;
  EXPECT_EQ(idle->mtp_parameters, layer + 2 * 4096LL * 4096 + 3 * 4096);
  EXPECT_EQ(loaded->bytes, idle->bytes + 2 * loaded->mtp_parameters);
}

TEST(CountWeights, HugeSizes_AreAnErrorThatNamesTheFactors) {
  const auto ledger =
      count_weights(plain_model({.layers = 2, .hidden = std::numeric_limits<std::int64_t>::max()}));
  ASSERT_FALSE(ledger.has_value());
  EXPECT_EQ(ledger.error().code, ErrorCode::kConfigOverflow);
  EXPECT_THAT(ledger.error().message, HasSubstr("hidden_size 9223372036854775807"));
  EXPECT_THAT(ledger.error().message, HasSubstr("vocab_size 128256"));
  EXPECT_EQ(ledger.error().where, "/hidden_size");
}

TEST(CountWeights, WrongParallelSizes_AreErrors) {
  const auto code = [](const config::ModelConfig& model, const Parallel& parallel) {
    const auto ledger = count_weights(model, {.parallel = parallel});
    return ledger ? ErrorCode::kInternal : ledger.error().code;
  };
  EXPECT_EQ(code(plain_model(), {.tp = 0}), ErrorCode::kUsage);
  EXPECT_EQ(code(plain_model(), {.ep = -1}), ErrorCode::kUsage);
  EXPECT_EQ(code(plain_model(), {.pp = 33}), ErrorCode::kUsageConflict);
  EXPECT_EQ(code(plain_model(), {.ep = 2}), ErrorCode::kUsageConflict);
  EXPECT_EQ(code(mixture(), {.ep = 9}), ErrorCode::kUsageConflict);
}

TEST(CountWeights, NoGeometry_IsAnError) {
  config::ModelConfig model = plain_model();
  model.vocab_size = {};
  EXPECT_EQ(count_weights(model).error().code, ErrorCode::kConfigMissing);
  EXPECT_EQ(count_weights(config::ModelConfig{}).error().code, ErrorCode::kConfigMissing);
}

TEST(PartName, EveryPart_HasItsOwn) {
  EXPECT_EQ(part_name(Part::kEmbedding), "embedding");
  EXPECT_EQ(part_name(Part::kSharedExperts), "shared experts");
  EXPECT_EQ(part_name(Part::kMtp), "mtp");
}

}  // namespace
}  // namespace kernelpath::memory
