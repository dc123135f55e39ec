#include "engines/trtllm/engine.h"
#include "real_config.h"

#include <gtest/gtest.h>

namespace kernelpath::engines::trtllm {
namespace {

TEST(WhyNot, BackendThatRuns_IsAdmitted) {
  const auto answer = engine().why_not(real_request("Qwen__Qwen3-8B"), "flashinfer");
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->admitted);
  EXPECT_TRUE(answer->refusals.empty());
}

TEST(WhyNot, MissingPackage_IsTheOneChange) {
  Request request = real_request("Qwen__Qwen3-8B");
  request.environment.lacks = {"flashinfer"};
  const auto answer = engine().why_not(request, "FLASHINFER");
  ASSERT_TRUE(answer);
  EXPECT_FALSE(answer->admitted);
  ASSERT_FALSE(answer->refusals.empty());
  EXPECT_EQ(answer->refusals[0].rule, "TRT-ATTN-FALLBACK");
  ASSERT_EQ(answer->remedies.at(0).size(), 1U);
  EXPECT_NE(answer->remedies[0][0].option.find("flashinfer"), std::string::npos);
}

TEST(WhyNot, SparseSetting_IsTakenAwayBeforeDevicesAreTried) {
  Request request = real_request("Qwen__Qwen3-8B");
  request.deployment.settings = {{"sparse_attention_config.algorithm", "rocket"}};
  const auto answer = engine().why_not(request, "FLASHINFER");
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->remedies.size(), 1U);
  EXPECT_EQ(answer->remedies[0].at(0).option,
            "without --set trtllm.sparse_attention_config.algorithm=rocket");
}

TEST(WhyNot, SparseByTheModelItself_HasNoRemedy) {
  const auto answer =
      engine().why_not(real_request("deepseek-ai__DeepSeek-V3.2", "h200"), "FLASHINFER");
  ASSERT_TRUE(answer);
  EXPECT_FALSE(answer->admitted);
  EXPECT_TRUE(answer->remedies.empty());
}

TEST(WhyNot, InnerLibrary_NamesDeviceAndHeads) {
  const auto answer =
      engine().why_not(real_request("deepseek-ai__DeepSeek-V3", "h200"), "cute_dsl_mla");
  ASSERT_TRUE(answer);
  ASSERT_FALSE(answer->remedies.empty());
  EXPECT_EQ(answer->remedies[0].size(), 2U);
  EXPECT_EQ(answer->remedies[0][0].option, "--tp 8");
  EXPECT_EQ(answer->remedies[0][1].option, "--device b200");
}

TEST(WhyNot, UnknownName_IsRefusedWithNearMatches) {
  const auto answer = engine().why_not(real_request("Qwen__Qwen3-8B"), "FLASHINFR");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUsageUnknown);
  EXPECT_EQ(answer.error().near_matches.at(0), "FLASHINFER");
}

}  // namespace
}  // namespace kernelpath::engines::trtllm
