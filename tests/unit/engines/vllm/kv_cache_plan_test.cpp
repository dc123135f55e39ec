#include "cache_case.h"

#include <gtest/gtest.h>

namespace kernelpath::engines::vllm {
namespace {

const KvSpec& spec_of(const KvCachePlan& plan, std::size_t layer) {
  return *plan.layers.at(layer).spec;
}

TEST(KvCachePlan, PlainLayers_ShareOneGroup) {
  CacheCase run("0.25.1");
  run.attention("FLASH_ATTN", 4);
  const KvCachePlan plan = run.plan();
  ASSERT_EQ(plan.groups.size(), 1U);
  EXPECT_EQ(plan.groups[0].spec, "FullAttentionSpec");
  EXPECT_EQ(plan.groups[0].page_bytes, 16 * 8 * 256 * 2);
  EXPECT_EQ(plan.layers[0].kernel_block_size, 16);
  const std::vector<ShapeAxis> shape = {std::nullopt, 2, 16, 8, 128};
  EXPECT_EQ(plan.layers[0].shape, shape);
}

TEST(KvCachePlan, FlashInferOnBlackwell_OrdersHeadsBeforeTokens) {
  CacheCase run("0.25.1", 10, 0);
  run.attention("FLASHINFER");
  const KvCachePlan plan = run.plan();
  EXPECT_EQ(plan.layout, "HND");
  EXPECT_EQ(plan.layers[0].stride_order, (std::vector<std::int64_t>{0, 1, 3, 2, 4}));
}

TEST(KvCachePlan, LayoutOf0330_IsResolvedForAllBackends) {
  CacheCase run("0.33.0", 10, 0);
  run.attention("FLASH_ATTN");
  run.attention("FLASHINFER");
  const KvCachePlan plan = run.plan();
  EXPECT_EQ(run.run.kv_layout, "LBHNC");
  const std::vector<ShapeAxis> shape = {std::nullopt, 8, 16, 256};
  EXPECT_EQ(plan.layers[0].shape, shape);
}

TEST(KvCachePlan, WantedLayoutThatNoBackendTakes_IsRefused) {
  CacheCase run("0.33.0", 10, 0);
  run.attention("FLASHINFER");
  run.run.kv_layout = "LBNHC";
  const KvCachePlan plan = run.plan();
  ASSERT_EQ(plan.errors.size(), 1U);
  EXPECT_EQ(plan.errors[0].rule, "VLLM-KV-LAYOUT-REFUSED");
  EXPECT_TRUE(plan.layers.empty());
}

TEST(KvCachePlan, WindowsAndFullLayers_AreGroupedByTheFewest) {
  CacheCase run("0.25.1");
  for (int i = 0; i < 5; ++i) run.attention("FLASH_ATTN").window = 1024;
  run.attention("FLASH_ATTN");
  const KvCachePlan plan = run.plan();
  ASSERT_EQ(plan.groups.size(), 6U);
  EXPECT_EQ(plan.groups[0].spec, "SlidingWindowSpec");
  EXPECT_EQ(plan.groups[5].spec, "FullAttentionSpec");
}

TEST(KvCachePlan, NearlyAsManyOfTwoKinds_MakeTwoGroups) {
  CacheCase run("0.25.1");
  for (int i = 0; i < 12; ++i) run.attention("FLASH_ATTN").window = 128;
  run.attention("FLASH_ATTN", 13);
  const KvCachePlan plan = run.plan();
  ASSERT_EQ(plan.groups.size(), 2U);
  EXPECT_EQ(plan.groups[0].layers.size(), 12U);
  EXPECT_EQ(plan.groups[1].layers.size(), 13U);
}

TEST(KvCachePlan, SmallerPages_GrowTheirBlock) {
  CacheCase run("0.33.0");
  run.attention("FLASH_ATTN").window = 1024;
  run.attention("FLASH_ATTN").head_size = 256;
  const KvCachePlan plan = run.plan();
  EXPECT_EQ(spec_of(plan, 0).block_size, 32);
  EXPECT_EQ(spec_of(plan, 1).block_size, 16);
  EXPECT_EQ(plan.layers[0].page_bytes, plan.layers[1].page_bytes);
}

TEST(KvCachePlan, HybridManagerOff_KeepsWindowsAsFullAttention) {
  for (const std::string version : {"0.25.1", "0.33.0"}) {
    CacheCase run(version);
    run.attention("FLASH_ATTN").window = 1024;
    run.attention("FLASH_ATTN");
    run.run.hybrid_manager_off = true;
    const KvCachePlan plan = run.plan();
    ASSERT_EQ(plan.groups.size(), 1U) << version;
    EXPECT_EQ(spec_class_name(spec_of(plan, 0).kind), "FullAttentionSpec");
    EXPECT_EQ(spec_of(plan, 0).window, 1024);
    // Until 0.32 the new spec loses a field, and so the layers keep one each.
    EXPECT_EQ(plan.groups[0].spec,
              version == "0.25.1" ? "UniformTypeKVCacheSpecs" : "FullAttentionSpec");
  }
}

TEST(KvCachePlan, HybridManagerOffWithStates_IsRefused) {
  CacheCase run("0.25.1");
  run.states(1024);
  run.attention("FLASH_ATTN");
  run.run.hybrid_manager_off = true;
  const KvCachePlan plan = run.plan();
  ASSERT_EQ(plan.errors.size(), 1U);
  EXPECT_EQ(plan.errors[0].type, "ValueError");
  EXPECT_EQ(plan.errors[0].rule, "VLLM-KV-HYBRID-OFF-MIXED");
}

TEST(KvCachePlan, EncoderOnlyLayers_KeepNothing) {
  CacheCase run("0.25.1");
  run.attention("FLASH_ATTN", 2);
  for (BuiltLayer& layer : run.layers) layer.role = LayerRole::kEncoderOnly;
  const KvCachePlan plan = run.plan();
  EXPECT_TRUE(plan.groups.empty());
  EXPECT_TRUE(plan.errors.empty());
  ASSERT_EQ(plan.layers.size(), 2U);
  EXPECT_FALSE(plan.layers[0].spec.has_value());
}

TEST(KvCachePlan, IndexerAndLatentCache_KeepASpecEach) {
  CacheCase run("0.25.1");
  run.model.use_mla = true;
  run.model.num_kv_heads = 1;
  run.run.cache_dtype = "fp8_ds_mla";
  run.layers.push_back({.role = LayerRole::kIndexer,
                        .reported_backend = "DEEPSEEK_V32_INDEXER",
                        .class_name = "DeepseekV32IndexerBackend",
                        .kv_dtype = "uint8",
                        .head_size = 132});
  BuiltLayer& layer = run.attention("FLASHMLA_SPARSE");
  layer.role = LayerRole::kMla;
  layer.head_size = 576;
  const KvCachePlan plan = run.plan();
  EXPECT_EQ(run.run.block_size, 64);
  ASSERT_EQ(plan.groups.size(), 1U);
  EXPECT_EQ(plan.groups[0].spec, "UniformTypeKVCacheSpecs");
  EXPECT_EQ(plan.layers[0].page_bytes, 64 * 132);
  EXPECT_EQ(plan.layers[1].page_bytes, 64 * 656);
}

TEST(KvCachePlan, CompressedLatents_ArePaddedToWhole576Bytes) {
  CacheCase run("0.25.1");
  run.run.cache_dtype = "fp8_ds_mla";
  BuiltLayer& layer = run.attention("FLASHMLA_SPARSE_DSV4");
  layer.role = LayerRole::kMla;
  layer.head_size = 512;
  layer.tokens_per_state = 4;
  layer.page_alignment = 576;
  layer.model_version = "deepseek_v4";
  const KvCachePlan plan = run.plan();
  EXPECT_EQ(run.run.block_size, 256);
  EXPECT_EQ(plan.layers[0].unpadded_page_bytes, 64 * 584);
  EXPECT_EQ(plan.layers[0].page_bytes, 37440);
  const std::vector<ShapeAxis> shape = {std::nullopt, 64, 584};
  EXPECT_EQ(plan.layers[0].shape, shape);
}

TEST(KvCachePlan, WindowOfLatentsKeptInFull_IsPaddedAgain) {
  for (const std::string version : {"0.25.1", "0.33.0"}) {
    CacheCase run(version);
    run.run.cache_dtype = "fp8_ds_mla";
    run.run.hybrid_manager_off = true;
    run.attention("FLASHMLA_SPARSE_DSV4", 2);
    for (BuiltLayer& layer : run.layers) {
      layer.role = LayerRole::kMla;
      layer.head_size = 512;
      layer.page_alignment = 576;
      layer.model_version = "deepseek_v4";
    }
    run.layers[0].window = 128;
    run.layers[0].own_block_size = 64;
    run.layers[1].tokens_per_state = 4;
    const KvCachePlan plan = run.plan();
    EXPECT_EQ(spec_class_name(spec_of(plan, 0).kind), "MLAAttentionSpec") << version;
    EXPECT_EQ(plan.layers[0].unpadded_page_bytes, 256 * 584);
    EXPECT_EQ(plan.layers[0].page_bytes, 260 * 576);
  }
}

TEST(KvCachePlan, WindowUnderContextParallelism_IsRefused) {
  CacheCase run("0.25.1");
  run.attention("FLASH_ATTN").window = 1024;
  run.run.dcp = 2;
  run.settings.dcp = 2;
  const KvCachePlan plan = run.plan();
  ASSERT_EQ(plan.errors.size(), 1U);
  EXPECT_EQ(plan.errors[0].rule, "VLLM-DCP-WINDOW");
}

// Bytes of one token of eight heads of 128 elements, by type of cache.
struct TokenBytes {
  const char* backend;
  const char* kv_dtype;
  std::int64_t bytes;
};

class KvTokenBytes : public testing::TestWithParam<TokenBytes> {};

TEST_P(KvTokenBytes, OfBothVersions_AreEqual) {
  for (const std::string version : {"0.25.1", "0.33.0"}) {
    CacheCase run(version, 10, 0);
    run.run.cache_dtype = GetParam().kv_dtype;
    run.attention(GetParam().backend);
    const KvCachePlan plan = run.plan();
    ASSERT_TRUE(plan.errors.empty()) << version;
    EXPECT_EQ(plan.layers[0].page_bytes / spec_of(plan, 0).block_size, GetParam().bytes) << version;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, KvTokenBytes,
                         testing::Values(TokenBytes{"FLASH_ATTN", "auto", 4096},
                                         TokenBytes{"FLASH_ATTN", "fp8", 2048},
                                         TokenBytes{"FLASHINFER", "nvfp4", 1152},
                                         TokenBytes{"TRITON_ATTN", "int4_per_token_head", 1088},
                                         TokenBytes{"TRITON_ATTN", "int8_per_token_head", 2112},
                                         TokenBytes{"TURBOQUANT", "turboquant_4bit_nc", 1072},
                                         TokenBytes{"TURBOQUANT", "turboquant_k3v4_nc", 944},
                                         TokenBytes{"TURBOQUANT", "turboquant_3bit_nc", 816},
                                         TokenBytes{"TURBOQUANT", "turboquant_k8v4", 1568}));

TEST(KvCachePlan, Int4UnderAWindow_IsNotHalvedUntil0320) {
  CacheCase run("0.25.1");
  run.run.cache_dtype = "int4_per_token_head";
  run.attention("TRITON_ATTN").window = 512;
  EXPECT_EQ(run.plan().layers[0].page_bytes / 16, 8 * 256 + 64);
}

}  // namespace
}  // namespace kernelpath::engines::vllm
