#include "engines/vllm/block_size.h"

#include "cache_case.h"
#include "engines/vllm/kernel_blocks.h"

#include <gtest/gtest.h>

namespace kernelpath::engines::vllm {
namespace {

TEST(BlockSize, BackendThatReadsOtherBlocks_IsAsked) {
  CacheCase run("0.25.1");
  run.attention("HPC_ATTN");
  const KvCachePlan plan = run.plan();
  EXPECT_EQ(run.run.block_size, 64);
  ASSERT_FALSE(plan.events.empty());
  EXPECT_EQ(plan.events[0].rule, "VLLM-KV-BLOCK-PREFERRED");
}

TEST(BlockSize, GivenByTheUser_IsKept) {
  CacheCase run("0.25.1");
  run.attention("HPC_ATTN");
  run.run.block_size = 128;
  run.run.user_block_size = true;
  const KvCachePlan plan = run.plan();
  EXPECT_EQ(run.run.block_size, 128);
  EXPECT_EQ(plan.layers[0].kernel_block_size, 64);
}

TEST(BlockSize, KernelThatReadsNoDivisor_IsTheEnginesError) {
  CacheCase run("0.25.1");
  run.attention("HPC_ATTN");
  run.run.block_size = 48;
  run.run.user_block_size = true;
  const KvCachePlan plan = run.plan();
  ASSERT_EQ(plan.errors.size(), 1U);
  EXPECT_EQ(plan.errors[0].type, "ValueError");
  EXPECT_EQ(plan.errors[0].rule, "VLLM-KV-KERNEL-BLOCK");
}

TEST(BlockSize, SeveralBackends_FirstDecidesUntil0320) {
  CacheCase run("0.25.1");
  run.attention("FLASH_ATTN");
  run.attention("HPC_ATTN");
  run.plan();
  EXPECT_EQ(run.run.block_size, 16);
}

TEST(BlockSize, SeveralBackendsSince0330_AgreeOnOne) {
  CacheCase run("0.33.0");
  run.attention("FLASH_ATTN");
  run.attention("HPC_ATTN");
  const KvCachePlan plan = run.plan();
  EXPECT_EQ(run.run.block_size, 64);
  EXPECT_TRUE(plan.errors.empty());
}

TEST(BlockSize, HybridModel_GrowsUntilAPageHoldsAState) {
  CacheCase run("0.25.1");
  run.states(300 * 1024);  // 614400 bytes; a token takes 4096
  run.attention("FLASH_ATTN");
  const KvCachePlan plan = run.plan();
  EXPECT_EQ(run.run.block_size, 160);
  EXPECT_EQ(run.run.mamba_page_size_padded, 160 * 4096);
  EXPECT_EQ(plan.layers[0].page_bytes, plan.layers[1].page_bytes);
  EXPECT_EQ(plan.layers[0].spec->block_size, 4096);
}

TEST(BlockSize, HybridModelOverridesTheUser_WithAWarning) {
  CacheCase run("0.25.1");
  run.states(300 * 1024);
  run.attention("FLASH_ATTN");
  run.run.user_block_size = true;
  const KvCachePlan plan = run.plan();
  ASSERT_FALSE(plan.events.empty());
  EXPECT_EQ(plan.events[0].rule, "VLLM-KV-BLOCK-HYBRID");
  EXPECT_EQ(plan.events[0].severity, Severity::kWarn);
}

TEST(BlockSize, ModeAll_MakesWholeChunks) {
  CacheCase run("0.25.1");
  run.states(300 * 1024);
  run.attention("FLASH_ATTN");
  run.model.mamba_chunk_size = 256;
  run.run.mamba_cache_mode = "all";
  run.plan();
  EXPECT_EQ(run.run.block_size, 256);
  EXPECT_EQ(run.run.mamba_block_size, 256);
}

TEST(BlockSize, ModeAlign_StatesAreKeptAtBlocks) {
  CacheCase run("0.33.0");
  run.states(300 * 1024);
  run.attention("FLASH_ATTN");
  run.run.mamba_cache_mode = "align";
  for (BuiltLayer& layer : run.layers) {
    if (layer.role == LayerRole::kState) layer.checkpoint_alignment = 64;
  }
  run.plan();
  EXPECT_EQ(run.run.block_size, 192);
  EXPECT_EQ(run.run.mamba_block_size, 192);
}

TEST(BlockSize, OneStateWithoutCheckpoints_DropsTheirAlignment) {
  CacheCase run("0.33.0");
  run.states(300 * 1024, 2);
  run.attention("FLASH_ATTN");
  run.run.mamba_cache_mode = "align";
  run.layers[0].checkpoint_alignment = 64;
  run.plan();
  EXPECT_EQ(run.run.block_size, 160);
}

TEST(BlockSize, AlignModeBeyondAStep_IsRefusedUntil0320) {
  for (const std::string version : {"0.25.1", "0.33.0"}) {
    CacheCase run(version);
    run.states(300 * 1024);
    run.attention("FLASH_ATTN");
    run.run.mamba_cache_mode = "align";
    run.run.max_num_batched_tokens = 128;
    const KvCachePlan plan = run.plan();
    EXPECT_EQ(plan.errors.empty(), version == "0.33.0");
    if (!plan.errors.empty()) {
      EXPECT_EQ(plan.errors[0].rule, "VLLM-KV-BLOCK-BATCHED-TOKENS");
    }
  }
}

TEST(BlockSize, LayersLeftOutOfAQuantizedCache_GrowTheOthers) {
  CacheCase run("0.25.1", 10, 0);
  run.run.cache_dtype = "nvfp4";
  run.run.skip_layers = {"0"};
  run.attention("FLASHINFER", 4);
  run.layers[0].kv_dtype = "auto";
  run.plan();
  EXPECT_EQ(run.run.block_size, 64);
}

TEST(BlockSize, WindowLeftOut_IsPaddedToTheSharedPage) {
  CacheCase run("0.25.1", 10, 0);
  run.run.cache_dtype = "nvfp4";
  run.run.skip_layers = {"sliding_window"};
  run.attention("FLASHINFER").window = 512;
  run.layers[0].kv_dtype = "auto";
  run.attention("FLASHINFER");
  const KvCachePlan plan = run.plan();
  ASSERT_TRUE(plan.errors.empty());
  EXPECT_EQ(plan.layers[0].spec->page_size_padded, 64 * 1152);
  EXPECT_EQ(plan.layers[0].spec->block_size, 16);
  EXPECT_EQ(plan.layers[0].page_bytes, plan.layers[1].page_bytes);
}

TEST(BlockSize, InterleaveThatDoesNotDivide_IsRefused) {
  CacheCase run("0.25.1");
  run.attention("FLASH_ATTN");
  run.run.dcp = 2;
  run.run.cp_interleave = 12;
  const KvCachePlan plan = run.plan();
  ASSERT_EQ(plan.errors.size(), 1U);
  EXPECT_EQ(plan.errors[0].type, "AssertionError");
  EXPECT_EQ(plan.errors[0].rule, "VLLM-KV-BLOCK-INTERLEAVE");
}

TEST(KernelBlock, ManagerBlockThatAllTake_IsKept) {
  const CacheCase run("0.25.1");
  const BackendClass* flash_attn = run.profile.find_member("FLASH_ATTN")->backend;
  const KernelBlockAsker askers[] = {{.backend = flash_attn}};
  EXPECT_EQ(common_kernel_block(run.context(), 544, askers), 544);
}

TEST(KernelBlock, ListedSizes_TheLargestDivisorIsTaken) {
  const CacheCase run("0.25.1");
  const KernelBlockAsker askers[] = {{.backend = run.profile.find_member("FLASH_ATTN")->backend},
                                     {.backend = run.profile.find_member("TURBOQUANT")->backend}};
  EXPECT_EQ(common_kernel_block(run.context(), 544, askers), 32);
  EXPECT_EQ(common_kernel_block(run.context(), 40, askers), std::nullopt);
}

TEST(KernelBlock, HeadSize256OnBlackwell_ReadsPagesOf128) {
  CacheCase run("0.33.0", 10, 0);
  BuiltLayer& layer = run.attention("FLASH_ATTN");
  layer.head_size = 256;
  run.settings.model->head_size = 256;
  const KvCachePlan plan = run.plan();
  EXPECT_EQ(run.run.block_size, 128);
  EXPECT_EQ(plan.layers[0].kernel_block_size, 128);
}

}  // namespace
}  // namespace kernelpath::engines::vllm
