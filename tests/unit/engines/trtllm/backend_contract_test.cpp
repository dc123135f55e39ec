#include "engines/trtllm/backend_contract.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace kernelpath::engines::trtllm {
namespace {

TEST(BackendCapabilities, EveryBase_StandsBeforeItsClasses) {
  std::vector<std::string_view> seen = {""};
  for (const BackendCapability& row : backend_capabilities()) {
    EXPECT_NE(std::find(seen.begin(), seen.end(), row.base_class), seen.end()) << row.backend_class;
    EXPECT_EQ(std::count(seen.begin(), seen.end(), row.backend_class), 0) << row.backend_class;
    seen.push_back(row.backend_class);
  }
}

TEST(BackendCapabilities, Vanilla_HasMlaAndForcesNhd) {
  const BackendCapability* vanilla = find_capability("VanillaAttention");
  ASSERT_NE(vanilla, nullptr);
  EXPECT_TRUE(vanilla->mla);
  EXPECT_FALSE(vanilla->fused_rope);
  EXPECT_EQ(vanilla->kv_layout, "NHD");
  EXPECT_EQ(find_capability("FlashInferAttention")->kv_layout, "HND");
  EXPECT_TRUE(find_capability("FlashInferAttention")->multi_item_scoring);
}

TEST(BackendCapabilities, SparseClasses_DifferWhereTheFactsSaySo) {
  EXPECT_FALSE(find_capability("MiniMaxM3MsaSparseAttention")->fused_rope);
  EXPECT_TRUE(find_capability("MiniMaxM3MsaSparseAttention")->fused_qkv);
  EXPECT_FALSE(find_capability("GlmKpoolSparseAttention")->fused_qkv);
  EXPECT_TRUE(find_capability("DSAVanillaAttention")->fused_rope);
  EXPECT_TRUE(find_capability("DSATrtllmAttention")->fused_rope);
}

TEST(InheritsFrom, GrandchildAndUnknown_AreToldApart) {
  EXPECT_TRUE(inherits_from("CSA2FlashMLAAttention", "TrtllmAttention"));
  EXPECT_TRUE(inherits_from("TrtllmAttention", "TrtllmAttention"));
  EXPECT_FALSE(inherits_from("FlashInferAttention", "TrtllmAttention"));
  EXPECT_FALSE(inherits_from("NoSuchAttention", "TrtllmAttention"));
}

TEST(ParseVariant, UnknownName_NamesTheKnownOnes) {
  EXPECT_EQ(parse_variant("").value(), Variant::kDefault);
  EXPECT_EQ(parse_variant("stored-2a3c95e3").value(), Variant::kStored2a3c95e3);
  const auto unknown = parse_variant("sparse-strict-fallbak");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kUsageUnknown);
  ASSERT_FALSE(unknown.error().near_matches.empty());
  EXPECT_EQ(unknown.error().near_matches.front(), "sparse-strict-fallback");
}

TEST(MergeForwardArgs, EachWayOfGiving_HasItsResult) {
  const std::vector<std::string> none;
  const std::vector<std::string> known = {"attention_mask", "timestep"};
  const std::vector<std::string> unknown = {"attention_mask", "mystery"};
  EXPECT_EQ(merge_forward_args(true, none), ForwardArgs::kForwardArgs);
  EXPECT_EQ(merge_forward_args(false, none), ForwardArgs::kFromKwargs);
  EXPECT_EQ(merge_forward_args(false, known), ForwardArgs::kFromKwargs);
  EXPECT_EQ(merge_forward_args(true, known), ForwardArgs::kBoth);
  EXPECT_EQ(merge_forward_args(true, unknown), ForwardArgs::kUnknown);
  EXPECT_EQ(forward_args_name(ForwardArgs::kForwardArgs), "FORWARD-ARGS");
}

TEST(UsePagedContextFmha, AnyOfThree_TurnsItOn) {
  EXPECT_FALSE(use_paged_context_fmha(false, false, false));
  EXPECT_TRUE(use_paged_context_fmha(true, false, false));
  EXPECT_TRUE(use_paged_context_fmha(false, true, false));
  EXPECT_TRUE(use_paged_context_fmha(false, false, true));
}

TEST(ModelConfigFusesPositions, RawString_IsCompared) {
  EXPECT_TRUE(model_config_fuses_positions("TRTLLM"));
  EXPECT_FALSE(model_config_fuses_positions("trtllm"));
}

}  // namespace
}  // namespace kernelpath::engines::trtllm
