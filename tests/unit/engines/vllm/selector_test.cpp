#include "engines/vllm/selector.h"

#include "context.h"
#include "engines/vllm/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelpath::engines::vllm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;

std::vector<std::string> reasons_of(const Selection& selection, std::string_view backend) {
  for (const Rejected& rejected : selection.rejected) {
    if (rejected.backend == backend) return rejected.reasons;
  }
  return {"not rejected"};
}

TEST(SelectBackend, Automatic_WalksTheWholeList) {
  const Selection selection = Asked("0.25.1").select();
  EXPECT_EQ(selection.backend, "FLASH_ATTN");
  EXPECT_TRUE(selection.automatic);
  EXPECT_THAT(selection.valid,
              ElementsAre("FLASH_ATTN", "FLASHINFER", "TRITON_ATTN", "FLEX_ATTENTION"));
  EXPECT_THAT(reasons_of(selection, "TURBOQUANT"), ElementsAre("kv_cache_dtype not supported"));
}

TEST(SelectBackend, NamesInAnyCase_AndAutoMeansNone) {
  Asked asked("0.25.1");
  asked.request.backend = "Flash_Attn";
  EXPECT_FALSE(asked.select().automatic);
  EXPECT_EQ(asked.select().member, "FLASH_ATTN");
  asked.request.backend = "AUTO";
  EXPECT_TRUE(asked.select().automatic);
}

TEST(SelectBackend, NameOfAnotherVersion_IsUnknown) {
  Asked asked("0.25.1");
  asked.request.backend = "triton_flash_attn";
  const Selection selection = asked.select();
  ASSERT_TRUE(selection.error);
  EXPECT_EQ(selection.error->fault, SelectionFault::kUnknownName);
  EXPECT_EQ(selection.error->stage, "config");
  EXPECT_THAT(selection.error->text, HasSubstr("'TRITON_FLASH_ATTN'"));
}

TEST(SelectBackend, Explicit_NeverFallsBack) {
  Asked asked("0.25.1");
  asked.request.backend = "FLASH_ATTN";
  asked.request.config.dtype = "float32";
  const Selection selection = asked.select();
  ASSERT_TRUE(selection.error);
  EXPECT_EQ(selection.error->fault, SelectionFault::kInvalid);
  EXPECT_TRUE(selection.member.empty());
  EXPECT_THAT(reasons_of(selection, "FLASH_ATTN"), ElementsAre("dtype not supported"));
  asked.request.backend.reset();
  EXPECT_EQ(asked.select().backend, "TRITON_ATTN");
}

TEST(SelectBackend, BlockSize_NamesTheBackendsItRulesOut) {
  Asked asked("0.25.1");
  asked.request.config = {.head_size = 576, .kv_dtype = "fp8", .block_size = 16, .use_mla = true};
  const Selection selection = asked.select();
  EXPECT_EQ(selection.backend, "TRITON_MLA");
  EXPECT_THAT(selection.precluded, ElementsAre("FLASHMLA"));
  asked.request.config.block_size.reset();
  EXPECT_EQ(asked.select().backend, "FLASHMLA");
  EXPECT_THAT(asked.select().precluded, IsEmpty());
}

TEST(SelectBackend, MissingPackage_IsAReason) {
  Asked asked("0.25.1", 10, 0);
  asked.machine.packages.flashinfer = false;
  EXPECT_THAT(reasons_of(asked.select(), "FLASHINFER"), ElementsAre("ImportError"));
  Asked later("0.33.0", 10, 0);
  later.machine.packages.flashinfer = false;
  EXPECT_THAT(reasons_of(later.select(), "FLASHINFER"),
              ElementsAre("ModuleNotFoundError: No module named 'flashinfer'"));
}

TEST(SelectBackend, Layouts_BelongToTheChoice) {
  EXPECT_THAT(Asked("0.25.1", 10, 0).select().layouts, Optional(ElementsAre("HND")));
  EXPECT_THAT(Asked("0.33.0", 10, 0).select().layouts, Optional(ElementsAre("LBHNC", "BLHNC")));
  EXPECT_FALSE(Asked("0.33.0").select().layouts);
}

TEST(SelectBackend, Placeholder_MustBeRegistered) {
  Asked asked("0.25.1");
  asked.request.backend = "custom";
  ASSERT_TRUE(asked.select().error);
  EXPECT_EQ(asked.select().error->fault, SelectionFault::kNotRegistered);
  asked.request.registered = {{.name = "CUSTOM", .path = "mine.Backend"}};
  EXPECT_EQ(asked.select().path, "mine.Backend");
  EXPECT_EQ(asked.select().class_name, "Backend");
}

TEST(SelectBackend, PluginOverAMember_AnswersForItsClass) {
  Asked asked("0.25.1");
  asked.request.config.kv_dtype = "fp8";
  asked.request.registered = {{.name = "FLASH_ATTN", .path = "mine.Backend"}};
  EXPECT_THAT(reasons_of(asked.select(), "FLASH_ATTN"),
              ElementsAre("kv_cache_dtype not supported"));
  asked.request.registered.front().inherits = "TRITON_ATTN";
  EXPECT_EQ(asked.select().member, "FLASH_ATTN");
  EXPECT_EQ(asked.select().class_name, "Backend");
}

TEST(SelectBackend, NewNames_CameWith033) {
  for (const char* version : {"0.25.1", "0.33.0"}) {
    Asked asked(version);
    asked.request.backend = "MINE";
    asked.request.registered = {{.name = "MINE", .path = "mine.Backend"}};
    EXPECT_EQ(asked.select().error.has_value(), std::string_view(version) == "0.25.1") << version;
  }
}

TEST(SelectBackend, MsaAlias_LeavesTheChoiceOpen) {
  Asked asked("0.33.0");
  asked.request.backend = "CUTLASS_MSA";
  EXPECT_TRUE(asked.select().automatic);
  EXPECT_EQ(asked.select().backend, "FLASH_ATTN");
}

TEST(SelectBackend, FieldThatTheRuleReadsUnchecked_IsTheEnginesFault) {
  Asked asked("0.33.0", 10, 0);
  asked.settings.model = ModelFacts{};
  asked.request.config = {.head_size = 576, .use_mla = true, .use_sparse = true};
  asked.request.backend = "FLASHINFER_MLA_SPARSE";
  ASSERT_TRUE(asked.select().error);
  EXPECT_EQ(asked.select().error->type, "AttributeError");
}

TEST(SelectBackend, DcpWithoutLse_IsRefusedWhileSelectingSince033) {
  for (const char* version : {"0.25.1", "0.33.0"}) {
    Asked asked(version);
    asked.settings.dcp = 2;
    asked.request.config.use_dcp = true;
    asked.request.backend = "TRITON_ATTN";
    EXPECT_EQ(asked.select().error.has_value(), std::string_view(version) == "0.33.0") << version;
  }
}

TEST(SelectOnRocm, Order_FollowsAiter) {
  Asked asked("0.25.1", 9, 4);
  asked.machine.platform = hardware::Platform::kRocm;
  asked.machine.cdna = 3;
  EXPECT_EQ(asked.select().backend, "ROCM_ATTN");
  asked.request.config.use_kv_connector = true;
  EXPECT_EQ(asked.select().backend, "TRITON_ATTN");
  asked.machine.packages.aiter = true;
  EXPECT_EQ(asked.select().backend, "TRITON_ATTN") << "the unified one inherits the refusal";
  asked.machine.aiter_enabled = true;
  EXPECT_EQ(asked.select().member, "ROCM_AITER_FA");
  EXPECT_EQ(asked.select().backend, "FLASH_ATTN") << "it reports FlashAttention's name";
}

TEST(SelectOnRocm, FailedSearch_NamesThePlatform) {
  Asked asked("0.33.0", 9, 4);
  asked.machine.platform = hardware::Platform::kRocm;
  asked.machine.cdna = 3;
  asked.request.config.kv_dtype = "nvfp4";
  ASSERT_TRUE(asked.select().error);
  EXPECT_THAT(asked.select().error->text, HasSubstr("for rocm with"));
}

TEST(SelectOnRocm, PackedRun_DropsTheRequestWhereItCannotServe) {
  Asked asked("0.33.0", 9, 4);
  asked.machine.platform = hardware::Platform::kRocm;
  asked.machine.cdna = 3;
  asked.settings.run_kv_dtype = "turboquant_k8v4";
  asked.request.config.kv_dtype = "turboquant_k8v4";
  asked.request.backend = "TRITON_ATTN";
  EXPECT_EQ(asked.select().backend, "TURBOQUANT");
  asked.settings.run_kv_dtype = "fp8";
  asked.request.config.kv_dtype = "nvfp4";
  EXPECT_TRUE(asked.select().error);
}

TEST(SelectOnCpu, EveryKindOfLayer_HasOneBackend) {
  Asked old("0.25.1");
  old.machine.platform = hardware::Platform::kCpu;
  old.request.backend = "FLASHINFER";
  EXPECT_EQ(old.select().backend, "CPU_ATTN");
  old.request.config.use_mla = true;
  ASSERT_TRUE(old.select().error);
  EXPECT_EQ(old.select().error->type, "NotImplementedError");
  Asked later("0.33.0");
  later.machine.platform = hardware::Platform::kCpu;
  later.request.config.use_mla = true;
  EXPECT_EQ(later.select().backend, "AMX_MLA");
  later.request.backend = "cpu_mla";
  EXPECT_EQ(later.select().backend, "CPU_MLA");
  later.request.config.kv_dtype = "fp8";
  EXPECT_TRUE(later.select().error);
}

TEST(PreferredBlockSize, SmallestKernelBlock_WhereSixteenIsNone) {
  const Asked hopper("0.25.1");
  const auto preferred = [&](std::string_view member) {
    return preferred_block_size(hopper.context(), *hopper.profile.find_member(member)->backend, 16);
  };
  EXPECT_EQ(preferred("FLASH_ATTN"), 16);
  EXPECT_EQ(preferred("FLASHMLA"), 64);
  EXPECT_EQ(preferred("CUTLASS_MLA"), 128);
  EXPECT_EQ(preferred("FLASHINFER_MLA"), 32);
  EXPECT_EQ(preferred("ROCM_AITER_UNIFIED_ATTN"), 64);
}

TEST(CommonLayouts, VotesDecide_AndNoneIsPossible) {
  const Asked asked("0.33.0", 10, 0);
  const auto backend = [&](std::string_view member) {
    return asked.profile.find_member(member)->backend;
  };
  const BackendClass* mixed[] = {backend("FLASHINFER"), backend("TRITON_ATTN")};
  EXPECT_THAT(common_layouts(asked.context(), mixed), ElementsAre("LBHNC", "BLHNC"));
  const BackendClass* clash[] = {backend("FLASHINFER"), backend("FLEX_ATTENTION")};
  EXPECT_THAT(common_layouts(asked.context(), clash), IsEmpty());
  const BackendClass* open[] = {backend("TRITON_ATTN")};
  EXPECT_EQ(common_layouts(asked.context(), open), asked.profile.layout_preference);
}

}  // namespace
}  // namespace kernelpath::engines::vllm
