#include "attention/selector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace kernelpath::attention {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

LayerRequest plain() {
  return {.geometry = {.num_heads = 8, .num_kv_heads = 2, .head_dim = 64, .v_head_dim = 64}};
}

LayerRequest latent() {
  LayerRequest out = plain();
  out.mla = MlaDims{.q_lora_rank = 0,
                    .kv_lora_rank = 512,
                    .qk_nope_head_dim = 128,
                    .qk_rope_head_dim = 64,
                    .v_head_dim = 128};
  return out;
}

std::vector<std::string> rules(const std::vector<Refusal>& refusals) {
  std::vector<std::string> out;
  for (const Refusal& refusal : refusals) out.push_back(refusal.rule);
  return out;
}

TEST(Select, NoName_TakesTheFirstThatCan) {
  const auto selection = select({.layer = plain()});
  ASSERT_TRUE(selection);
  EXPECT_EQ(selection->chosen->id, BackendId::kFused);
  EXPECT_EQ(selection->candidates.size(), 1U);
}

TEST(Select, LayerBeyondTheFirst_TakesTheNextAndKeepsTheReasons) {
  LayerRequest layer = plain();
  layer.geometry.head_dim = layer.geometry.v_head_dim = 2048;
  const auto selection = select({.layer = layer});
  ASSERT_TRUE(selection);
  EXPECT_EQ(selection->chosen->id, BackendId::kVanilla);
  ASSERT_EQ(selection->candidates.size(), 3U);
  EXPECT_THAT(rules(selection->candidates[0].refusals), ElementsAre("KP-HEAD-DIM"));
  EXPECT_THAT(selection->candidates[0].refusals[0].reason, HasSubstr("2048 is outside 1 to 1024"));
}

TEST(Select, NamesInAnyCase_AreFound) {
  for (const std::string name : {"VANILLA", "vanilla", "Vanilla"}) {
    const auto selection = select({.layer = plain(), .backend = name});
    ASSERT_TRUE(selection);
    EXPECT_EQ(selection->chosen->id, BackendId::kVanilla);
    EXPECT_EQ(selection->alias, "");
  }
}

TEST(Select, NamesOfOtherEngines_StandForFused) {
  for (const std::string name : {"TRTLLM", "TRITON_ATTN", "FLASH_ATTN"}) {
    const auto selection = select({.layer = plain(), .backend = name});
    ASSERT_TRUE(selection);
    EXPECT_EQ(selection->chosen->id, BackendId::kFused);
    EXPECT_EQ(selection->alias, name);
  }
}

TEST(Select, UnknownName_IsAnErrorWithTheList) {
  const auto selection = select({.layer = plain(), .backend = "FUSSED"});
  ASSERT_FALSE(selection);
  EXPECT_EQ(selection.error().code, ErrorCode::kUsageUnknown);
  EXPECT_THAT(selection.error().message, HasSubstr("FUSED, FLASHINFER, VANILLA"));
  EXPECT_THAT(selection.error().near_matches, ElementsAre("FUSED"));
}

TEST(Select, NamedBackendThatIsNotThere_IsRefusedAndNotReplaced) {
  const auto selection = select({.layer = plain(), .backend = "FLASHINFER"});
  ASSERT_TRUE(selection);
  EXPECT_EQ(selection->chosen, nullptr);
  ASSERT_EQ(selection->candidates.size(), 1U);
  EXPECT_EQ(selection->candidates[0].refusals[0].rule, "KP-BUILD");
}

TEST(Select, AnotherPlatform_RefusesEveryBackendOfThisOne) {
  LayerRequest layer = plain();
  layer.platform = hardware::Platform::kCuda;
  const auto selection = select({.layer = layer});
  ASSERT_TRUE(selection);
  EXPECT_EQ(selection->chosen, nullptr);
  EXPECT_THAT(rules(selection->candidates[0].refusals), ElementsAre("KP-PLATFORM"));
}

TEST(Select, SizesThatDoNotGoTogether_AreAnError) {
  LayerRequest layer = plain();
  layer.geometry.num_kv_heads = 3;
  const auto uneven = select({.layer = layer});
  ASSERT_FALSE(uneven);
  EXPECT_THAT(uneven.error().message, HasSubstr("8 heads cannot share 3 KV heads"));
  LayerRequest blocks = plain();
  blocks.kv_type = DataType::kNvfp4;
  EXPECT_TRUE(select({.layer = blocks}));
  blocks.geometry.head_dim = 72;
  const auto rest = select({.layer = blocks});
  ASSERT_FALSE(rest);
  EXPECT_THAT(rest.error().message, HasSubstr("72 is no multiple"));
}

TEST(Select, Mla_NeedsAllFiveSizes) {
  EXPECT_TRUE(select({.layer = latent()}));
  LayerRequest without_q = latent();
  without_q.mla->q_lora_rank.reset();
  EXPECT_FALSE(select({.layer = without_q}));
  for (std::int64_t MlaDims::*size : {&MlaDims::kv_lora_rank, &MlaDims::qk_nope_head_dim,
                                      &MlaDims::qk_rope_head_dim, &MlaDims::v_head_dim}) {
    LayerRequest broken = latent();
    *broken.mla.*size = 0;
    EXPECT_FALSE(select({.layer = broken}));
  }
}

TEST(Selector, SameKey_IsAnsweredFromMemory) {
  Selector selector;
  const Result<Selection>& first = selector.select({.layer = plain()});
  const Result<Selection>& again = selector.select({.layer = plain()});
  EXPECT_EQ(&first, &again);
  EXPECT_EQ(selector.size(), 1U);
}

TEST(Selector, ChangedKey_IsSelectedAnew) {
  Selector selector;
  const Result<Selection>& first = selector.select({.layer = plain()});
  LayerRequest wide = plain();
  wide.geometry.head_dim = wide.geometry.v_head_dim = 2048;
  EXPECT_EQ(selector.select({.layer = wide})->chosen->id, BackendId::kVanilla);
  EXPECT_EQ(selector.select({.layer = plain(), .backend = "VANILLA"})->chosen->id,
            BackendId::kVanilla);
  EXPECT_EQ(selector.size(), 3U);
  EXPECT_EQ(first->chosen->id, BackendId::kFused) << "answers stay where they are";
}

// The table's row without chunked attention is one that this build cannot run, so its rules are
// asked directly.
TEST(Refusals, SequencesLongerThanTheChunk_NeedChunkedAttention) {
  const BackendRow& row = backend_row(BackendId::kFlashInfer);
  ASSERT_FALSE(row.features.has(Feature::kChunk));
  LayerRequest layer = plain();
  layer.platform = row.platform;
  layer.kv_type = DataType::kBf16;
  layer.geometry.chunk = 8192;
  layer.max_seq_len = 8193;
  EXPECT_THAT(rules(refusals(row, layer)), ElementsAre("KP-BUILD", "KP-CHUNK"));
  layer.max_seq_len = 8192;
  EXPECT_THAT(rules(refusals(row, layer)), ElementsAre("KP-BUILD"));
  layer.max_seq_len = 0;
  EXPECT_THAT(rules(refusals(row, layer)), ElementsAre("KP-BUILD", "KP-CHUNK"));
}

TEST(Refusals, OtherBaseOfTheLse_IsRefused) {
  LayerRequest layer = plain();
  layer.lse_base = LogBase::kE;
  EXPECT_THAT(refusals(backend_row(BackendId::kFused), layer), ElementsAre());
  layer.lse_base = LogBase::k2;
  EXPECT_THAT(rules(refusals(backend_row(BackendId::kFused), layer)), ElementsAre("KP-LSE-BASE"));
}

TEST(RopeFusion, CompressionThatChangesTheLength_TurnsItOff) {
  BackendRow row = backend_row(BackendId::kFused);
  row.features.set(Feature::kFusedRope, true);
  LayerRequest layer = plain();
  EXPECT_FALSE(rope_fused(row, layer));
  layer.fused_rope = true;
  EXPECT_TRUE(rope_fused(row, layer));
  layer.compressed_length = true;
  EXPECT_FALSE(rope_fused(row, layer));
  EXPECT_THAT(refusals(backend_row(BackendId::kFused), layer), ElementsAre());
}

TEST(Refusals, EveryRule_IsListed) {
  LayerRequest layer = plain();
  layer.geometry.head_dim = 5000;
  layer.graph_level = GraphLevel::kAlways;
  layer.lse_base = LogBase::k2;
  layer.fused_qkv = true;
  layer.platform = hardware::Platform::kRocm;
  for (const BackendRow& row : backend_table()) {
    for (const Refusal& refusal : refusals(row, layer)) {
      EXPECT_TRUE(std::ranges::any_of(refusal_rules(), [&](const RefusalRule& rule) {
        return rule.id == refusal.rule;
      })) << refusal.rule;
    }
  }
}

}  // namespace
}  // namespace kernelpath::attention
