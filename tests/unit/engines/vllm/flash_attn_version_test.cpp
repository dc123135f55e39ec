#include "engines/vllm/flash_attn_version.h"

#include "context.h"

#include <gtest/gtest.h>

namespace kernelpath::engines::vllm {
namespace {

TEST(FlashAttnVersion, Default_FollowsTheGeneration) {
  EXPECT_EQ(flash_attn_version(Asked("0.25.1", 7, 5).context()), std::nullopt);
  EXPECT_EQ(flash_attn_version(Asked("0.25.1", 8, 0).context()), 2);
  EXPECT_EQ(flash_attn_version(Asked("0.25.1", 9, 0).context()), 3);
  EXPECT_EQ(flash_attn_version(Asked("0.25.1", 10, 3).context()), 4);
  EXPECT_EQ(flash_attn_version(Asked("0.25.1", 12, 0).context()), 2);
}

TEST(FlashAttnVersion, Forced_MustBeUsable) {
  Asked ampere("0.25.1", 8, 0);
  ampere.settings.flash_attn_version = 4;
  EXPECT_EQ(flash_attn_version(ampere.context()), std::nullopt);
  Asked blackwell("0.25.1", 10, 0);
  blackwell.settings.flash_attn_version = 3;
  EXPECT_EQ(flash_attn_version(blackwell.context()), 4);
  blackwell.machine.packages.flash_attn_4 = false;
  EXPECT_EQ(flash_attn_version(blackwell.context()), 2);
}

TEST(FlashAttnVersion, AlibiAndBatchInvariance_GoBackTo2) {
  EXPECT_EQ(flash_attn_version(Asked("0.33.0").context(), {.requires_alibi = true}), 2);
  Asked blackwell("0.33.0", 10, 0);
  blackwell.settings.batch_invariant = true;
  EXPECT_EQ(flash_attn_version(blackwell.context()), 2);
}

TEST(FlashAttnVersion, HopperCasesWithout3_RunOn4) {
  const Asked hopper("0.25.1");
  EXPECT_EQ(flash_attn_version(hopper.context(), {.head_size = 256}), 3);
  EXPECT_EQ(flash_attn_version(hopper.context(), {.head_size = 264}), 4);
  EXPECT_EQ(flash_attn_version(hopper.context(),
                               {.head_size = 192, .head_size_v = 128, .has_sinks = true}),
            4);
  EXPECT_EQ(flash_attn_version(hopper.context(), {.head_size = 192, .head_size_v = 128}), 3);
}

TEST(FlashAttnVersion, BlackwellHeads_AreLimitedByTensorMemory) {
  const Asked old("0.25.1", 10, 0);
  EXPECT_EQ(flash_attn_version(old.context(), {.head_size = 128}), 4);
  EXPECT_EQ(flash_attn_version(old.context(), {.head_size = 136}), 2);
  EXPECT_EQ(flash_attn_version(old.context(), {.head_size = 192}), 4);
  const Asked later("0.33.0", 10, 0);
  EXPECT_EQ(flash_attn_version(later.context(), {.head_size = 192}), 2);
  EXPECT_EQ(flash_attn_version(later.context(), {.head_size = 192, .head_size_v = 128}), 4);
}

TEST(FlashAttnVersion, HeadSize256OnBlackwell_HasItsOwnKernelSince033) {
  const FlashAttnQuestion layer = {.head_size = 256, .kv_block_size = 128, .supports_hd256 = true};
  EXPECT_EQ(flash_attn_version(Asked("0.25.1", 10, 0).context(), layer), 2);
  Asked later("0.33.0", 10, 0);
  EXPECT_EQ(flash_attn_version(later.context(), layer), 4);
  EXPECT_EQ(flash_attn_version(later.context(), {.head_size = 256}), 2) << "caller without it";
  FlashAttnQuestion small_blocks = layer;
  small_blocks.kv_block_size = 64;
  EXPECT_EQ(flash_attn_version(later.context(), small_blocks), 2);
  FlashAttnQuestion sinks = layer;
  sinks.has_sinks = true;
  EXPECT_EQ(flash_attn_version(later.context(), sinks), 2);
  later.settings.dcp = 2;
  EXPECT_EQ(flash_attn_version(later.context(), layer), 2);
  later.settings.dcp = 1;
  later.settings.run_kv_dtype = "fp8";
  EXPECT_EQ(flash_attn_version(later.context(), layer), 2);
}

TEST(FlashAttnVersion, OtherPlatforms_HaveNone) {
  Asked amd("0.33.0", 9, 4);
  amd.machine.platform = hardware::Platform::kRocm;
  EXPECT_EQ(flash_attn_version(amd.context()), std::nullopt);
}

}  // namespace
}  // namespace kernelpath::engines::vllm
