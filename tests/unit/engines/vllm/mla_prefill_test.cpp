#include "engines/vllm/mla_prefill.h"

#include "context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelpath::engines::vllm {
namespace {

using ::testing::ElementsAre;

constexpr ModelFacts kGlm = {.qk_nope_head_dim = 192, .qk_rope_head_dim = 64, .v_head_dim = 256};

TEST(SelectMlaPrefill, WideHeadsOnBlackwell_PreferTrtllmSince033) {
  for (const char* version : {"0.25.1", "0.33.0"}) {
    Asked asked(version, 10, 0);
    asked.settings.model = kGlm;
    EXPECT_EQ(select_mla_prefill(asked.context(), std::nullopt, "bfloat16").backend,
              asked.profile.at_least(0, 33) ? "TRTLLM_RAGGED" : "FLASH_ATTN");
  }
}

TEST(SelectMlaPrefill, Float32_HasNone) {
  Asked asked("0.25.1");
  asked.settings.model = kGlm;
  const Selection selection = select_mla_prefill(asked.context(), std::nullopt, "float32");
  ASSERT_TRUE(selection.error);
  EXPECT_EQ(selection.error->fault, SelectionFault::kNoneValid);
  EXPECT_THAT(selection.rejected.front().reasons, ElementsAre("dtype torch.float32 not supported"));
}

TEST(SelectMlaPrefill, Requested_IsCheckedAlone) {
  Asked asked("0.33.0");
  asked.settings.model = kGlm;
  const Selection selection = select_mla_prefill(asked.context(), "flashinfer", "bfloat16");
  ASSERT_TRUE(selection.error);
  ASSERT_EQ(selection.rejected.size(), 1U);
  EXPECT_EQ(selection.rejected.front().reasons.size(), 2U) << "capability and dimensions";
}

TEST(SelectMlaPrefill, UnknownName_IsTheConfigsError) {
  const Selection selection = select_mla_prefill(Asked("0.25.1").context(), "cpu", "bfloat16");
  ASSERT_TRUE(selection.error);
  EXPECT_EQ(selection.error->stage, "config");
}

TEST(SelectMlaPrefill, OtherPlatforms_HaveTheirOwn) {
  Asked cpu("0.33.0");
  cpu.machine.platform = hardware::Platform::kCpu;
  EXPECT_EQ(select_mla_prefill(cpu.context(), std::nullopt, "bfloat16").member, "CPU");
  cpu.machine.packages.zentorch = true;
  EXPECT_EQ(select_mla_prefill(cpu.context(), std::nullopt, "bfloat16").member, "ZEN_CPU");
  Asked amd("0.33.0", 9, 4);
  amd.machine.platform = hardware::Platform::kRocm;
  amd.machine.cdna = 3;
  amd.machine.packages.aiter = true;
  amd.machine.aiter_enabled = true;
  amd.settings.model = kGlm;
  EXPECT_EQ(select_mla_prefill(amd.context(), std::nullopt, "bfloat16").member, "ROCM_AITER_FA");
  amd.settings.batch_invariant = true;
  EXPECT_EQ(select_mla_prefill(amd.context(), std::nullopt, "bfloat16").member, "FLASH_ATTN");
}

}  // namespace
}  // namespace kernelpath::engines::vllm
