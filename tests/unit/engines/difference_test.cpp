#include "engines/difference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelpath::engines {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

LayerGroup group(config::LayerKind kind, std::string backend, std::int64_t page) {
  LayerGroup out;
  out.kind = kind;
  out.layers = {0};
  out.backend = std::move(backend);
  out.kv.dtype = "bfloat16";
  out.kv.page_size = page;
  return out;
}

Resolution resolution(std::vector<LayerGroup> layers) {
  Resolution out;
  out.engine = "vllm";
  out.model_class = "LlamaForCausalLM";
  out.layers = std::move(layers);
  return out;
}

TEST(Compare, EqualResolutions_HaveNoDifference) {
  const Resolution one = resolution({group(config::LayerKind::kFull, "FLASH_ATTN", 16)});
  EXPECT_THAT(compare(one, one), IsEmpty());
}

TEST(Compare, BackendOfAKind_IsOneDifferenceWithItsRule) {
  Resolution from = resolution({group(config::LayerKind::kFull, "TRITON_ATTN", 16)});
  from.steps.push_back({.rule = "VLLM-SEL-SINKS",
                        .candidate = "FLASHINFER",
                        .verdict = Verdict::kRejected,
                        .reason = "attention sinks not supported",
                        .source = {}});
  const Resolution to = resolution({group(config::LayerKind::kFull, "FLASHINFER", 16)});
  const std::vector<Difference> found = compare(from, to);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].aspect, "backend");
  EXPECT_EQ(found[0].from, "TRITON_ATTN");
  EXPECT_EQ(found[0].to, "FLASHINFER");
  EXPECT_THAT(found[0].rules, ElementsAre("VLLM-SEL-SINKS"));
}

TEST(Compare, KindsOfLayers_AreComparedEachForItself) {
  const Resolution from = resolution(
      {group(config::LayerKind::kFull, "A", 16), group(config::LayerKind::kSliding, "A", 16)});
  const Resolution to = resolution(
      {group(config::LayerKind::kFull, "A", 16), group(config::LayerKind::kSliding, "B", 32)});
  const std::vector<Difference> found = compare(from, to);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].where, "sliding layers");
  EXPECT_EQ(found[1].aspect, "page size");
}

TEST(Compare, ErrorOfOneSide_IsADifference) {
  Resolution from = resolution({});
  from.error =
      EngineError{.type = "ValueError", .code = "SEL-NONE", .message = "", .near_matches = {}};
  const Resolution to = resolution({group(config::LayerKind::kFull, "A", 16)});
  const std::vector<Difference> found = compare(from, to);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].aspect, "error");
  EXPECT_EQ(found[0].from, "ValueError [SEL-NONE]");
  EXPECT_EQ(found[0].to, "-");
}

TEST(Compare, FinalOptions_AreComparedByName) {
  Resolution from = resolution({});
  from.options = {{"mamba_cache_mode", "none", "engine default"}, {"only_here", "1", "user"}};
  Resolution to = resolution({});
  to.options = {{"mamba_cache_mode", "align", "engine"}};
  const std::vector<Difference> found = compare(from, to);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].where, "mamba_cache_mode");
  EXPECT_EQ(found[0].to, "align");
}

}  // namespace
}  // namespace kernelpath::engines
