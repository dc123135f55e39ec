#include "engines/trtllm/attention_module.h"

#include <gtest/gtest.h>

namespace kernelpath::engines::trtllm {
namespace {

const MlaDimensions kDeepseek = {.q_lora_rank = 1536,
                                 .kv_lora_rank = 512,
                                 .qk_rope_head_dim = 64,
                                 .qk_nope_head_dim = 128,
                                 .v_head_dim = 128};

CreateAttentionRequest mla_request(std::string name) {
  CreateAttentionRequest request;
  request.dispatch.name = std::move(name);
  request.mla = kDeepseek;
  return request;
}

std::string error_code(const CreateAttentionDecision& decision) {
  return decision.error ? decision.error->code : "";
}

TEST(RegisterLayer, TakenIndex_GetsASuffix) {
  std::vector<std::string> taken;
  EXPECT_EQ(register_layer(3, taken), "3");
  EXPECT_EQ(register_layer(3, taken), "3_0");
  EXPECT_EQ(register_layer(3, taken), "3_1");
  EXPECT_EQ(register_layer(4, taken), "4");
  EXPECT_EQ(register_layer(std::nullopt, taken), "None");
  EXPECT_EQ(register_layer(std::nullopt, taken), "None_0");
}

ModuleGeometryRequest llama(std::int64_t tp) {
  ModuleGeometryRequest request;
  request.hidden_size = 4096;
  request.num_heads = 32;
  request.num_kv_heads = 8;
  request.tp = tp;
  return request;
}

TEST(ModuleGeometry, MoreRanksThanKvHeads_Replicates) {
  EXPECT_EQ(module_geometry(llama(8)).kv_heads_per_rank, 1);
  EXPECT_FALSE(module_geometry(llama(8)).kv_heads_replicated);
  const ModuleGeometry wide = module_geometry(llama(16));
  EXPECT_EQ(wide.heads_per_rank, 2);
  EXPECT_EQ(wide.kv_heads_per_rank, 1);
  EXPECT_TRUE(wide.kv_heads_replicated);
}

TEST(ModuleGeometry, HeadDim_TakesTheFirstThatIsThere) {
  ModuleGeometryRequest request = llama(1);
  EXPECT_EQ(module_geometry(request).head_dim, 128);
  request.head_dim_config = 64;
  EXPECT_EQ(module_geometry(request).head_dim, 64);
  request.head_dim_argument = 80;
  EXPECT_EQ(module_geometry(request).head_dim, 80);
  EXPECT_EQ(module_geometry(request).head_dim_from, "argument");
}

TEST(ModuleGeometry, HeadsThatDoNotDivide_AreAnAssertion) {
  EXPECT_EQ(module_geometry(llama(3)).error->code, "HEADS-INDIVISIBLE");
  ModuleGeometryRequest dp = llama(3);
  dp.attention_dp = true;
  EXPECT_FALSE(module_geometry(dp).error);
  EXPECT_EQ(module_geometry(dp).heads_per_rank, 32);
}

TEST(ModuleGeometry, ContextParallel_NeedsHelix) {
  ModuleGeometryRequest request = llama(1);
  request.cp = 2;
  EXPECT_FALSE(module_geometry(request).error);
  request.cp_type = "ULYSSES";
  EXPECT_EQ(module_geometry(request).error->code, "CP-NOT-HELIX");
}

TEST(SparseHookModule, Algorithms_HaveHooksWhereTheFactsSaySo) {
  EXPECT_EQ(sparse_hook_module("rocket"), "attention");
  EXPECT_EQ(sparse_hook_module("qsa"), "attention");
  EXPECT_EQ(sparse_hook_module("dsa"), "mla");
  EXPECT_EQ(sparse_hook_module("deepseek_v4"), "mla");
  EXPECT_EQ(sparse_hook_module("skip_softmax"), "");
}

TEST(CreateAttention, ChunkOfZero_CountsAsGiven) {
  CreateAttentionRequest request;
  request.dispatch.name = "VANILLA";
  EXPECT_EQ(error_code(create_attention(request)), "");
  request.attention_chunk_size = 0;
  const CreateAttentionDecision refused = create_attention(request);
  EXPECT_EQ(error_code(refused), "CHUNKED-ATTENTION-UNSUPPORTED");
  EXPECT_FALSE(refused.dispatch) << "the check comes before dispatch";
  request.dispatch.name = "trtllm";
  EXPECT_EQ(create_attention(request).backend_class, "TrtllmAttention");
}

TEST(CreateAttention, MlaDimensions_AreCheckedInOrder) {
  CreateAttentionRequest request = mla_request("TRTLLM");
  EXPECT_EQ(create_attention(request).backend_class, "TrtllmAttention");
  request.mla->v_head_dim = 0;
  request.mla->kv_lora_rank = std::nullopt;
  EXPECT_EQ(error_code(create_attention(request)), "MLA-GEOMETRY-NULL:kv_lora_rank");
  EXPECT_EQ(create_attention(request).error->type, "TypeError");
  request.mla->q_lora_rank = 0;
  EXPECT_EQ(error_code(create_attention(request)), "MLA-GEOMETRY:q_lora_rank");
  EXPECT_EQ(create_attention(request).error->type, "AssertionError");
}

TEST(CreateAttention, RopeWidthOfZero_DependsOnTheVariant) {
  CreateAttentionRequest request = mla_request("TRTLLM");
  request.mla->qk_rope_head_dim = 0;
  EXPECT_EQ(error_code(create_attention(request)), "");
  request.mla->qk_rope_head_dim = -1;
  EXPECT_EQ(error_code(create_attention(request)), "MLA-GEOMETRY:qk_rope_head_dim");
  request.mla->qk_rope_head_dim = 0;
  request.dispatch.variant = Variant::kStored2a3c95e3;
  EXPECT_EQ(error_code(create_attention(request)), "MLA-GEOMETRY:qk_rope_head_dim");
}

TEST(CreateAttention, ClassWithoutMla_IsRefused) {
  CreateAttentionRequest request = mla_request("TRTLLM");
  request.dispatch.sparse.emplace().algorithm = "minimax_m3";
  EXPECT_EQ(error_code(create_attention(request)), "MLA-UNSUPPORTED");
}

TEST(CreateAttention, NamedMlaKernel_IsForTrtllmOnlyInTheStrictVariant) {
  CreateAttentionRequest request = mla_request("FLASHINFER");
  request.flashinfer_mla_kernel = "trtllm-gen";
  EXPECT_EQ(error_code(create_attention(request)), "");
  request.dispatch.variant = Variant::kSparseStrictFallback;
  EXPECT_EQ(error_code(create_attention(request)), "FLASHINFER-MLA-KERNEL");
  request.dispatch.name = "TRTLLM";
  EXPECT_EQ(error_code(create_attention(request)), "");
}

RopeGateDecision gate(std::string backend_class, std::optional<bool> fusion, bool evicting,
                      std::string pos_embd) {
  return rope_gate({.backend_class = std::move(backend_class),
                    .rope_fusion = fusion,
                    .changes_physical_kv_length = evicting,
                    .pos_embd = std::move(pos_embd)});
}

TEST(RopeGate, Unset_TakesWhatTheClassSupports) {
  EXPECT_TRUE(gate("TrtllmAttention", std::nullopt, false, "rope").rope_fusion);
  EXPECT_FALSE(gate("GlmKpoolSparseAttention", std::nullopt, false, "rope").rope_fusion);
}

TEST(RopeGate, Eviction_WinsAndIsWarnedOnce) {
  const RopeGateDecision decision = gate("FlashInferAttention", true, true, "mrope");
  EXPECT_EQ(decision.warnings, std::vector<std::string>{"ROPE-OFF-KV-EVICTION"});
  EXPECT_EQ(decision.unfused_module, UnfusedRope::kMrope);
}

TEST(RopeGate, NonRotaryPositions_ArePassedUnfused) {
  EXPECT_TRUE(
      gate("FlashInferAttention", std::nullopt, false, "alibi").pos_params_passed_to_backend);
  EXPECT_FALSE(
      gate("FlashInferAttention", std::nullopt, false, "rope").pos_params_passed_to_backend);
  EXPECT_FALSE(gate("TrtllmAttention", std::nullopt, false, "").pos_params_passed_to_backend);
}

Llama4ChunkRequest llama4(std::string backend, int sm) {
  return {.attn_backend = std::move(backend),
          .sm = sm,
          .spec_config = true,
          .max_seq_len = 131072,
          .attention_chunk_size = 8192};
}

TEST(Llama4Chunk, SpeculationUpToSm90_DropsTheChunk) {
  EXPECT_EQ(llama4_chunk(llama4("TRTLLM", 90)).rule, "L4-PREBLACKWELL-SPEC");
  EXPECT_EQ(llama4_chunk(llama4("TRTLLM", 91)).rule, "L4-KEEP");
  EXPECT_EQ(llama4_chunk(llama4("Trtllm", 90)).rule, "L4-BACKEND");
}

TEST(Llama4Chunk, SequenceShorterThanOneChunk_DropsIt) {
  Llama4ChunkRequest request = llama4("TRTLLM", 100);
  request.max_seq_len = 8191;
  EXPECT_EQ(llama4_chunk(request).rule, "L4-SHORT-SEQ");
  request.max_seq_len = 8192;
  EXPECT_EQ(llama4_chunk(request).attention_chunk_size, 8192);
  request.attention_chunk_size = std::nullopt;
  EXPECT_EQ(llama4_chunk(request).attention_chunk_size, std::nullopt);
}

TEST(Llama4SeqLen, LowerCaseTrtllm_IsUncappedWithoutChunking) {
  EXPECT_TRUE(llama4_inferred_max_seq_len("trtllm", 131072).uncapped_without_chunking);
  EXPECT_EQ(llama4_inferred_max_seq_len("trtllm", 131072).inferred_max_seq_len, 131072);
  EXPECT_EQ(llama4_inferred_max_seq_len("foo", 4096).inferred_max_seq_len, 8192);
  EXPECT_FALSE(llama4_inferred_max_seq_len("TRTLLM", 4096).warning);
}

TEST(FlashMla, OnlyHopperWith576_HasIt) {
  EXPECT_TRUE(enable_flash_mla("TRTLLM", {9, 0}, 512, 64).enabled);
  EXPECT_FALSE(enable_flash_mla("TRTLLM", {9, 1}, 512, 64).enabled);
  EXPECT_FALSE(enable_flash_mla("trtllm", {9, 0}, 512, 64).enabled);
  EXPECT_FALSE(enable_flash_mla("TRTLLM", {9, 0}, 512, 63).enabled);
  EXPECT_TRUE(enable_flash_mla("TRTLLM", {9, 0}, 448, 128).enabled);
  EXPECT_EQ(enable_flash_mla("TRTLLM", {9, 0}, 512, 0).latent_head_dim, std::nullopt);
}

TEST(MlaInstances, DeepseekV3_DecodesOverTheLatent) {
  const MlaInstances instances = mla_instances(kDeepseek);
  EXPECT_EQ(instances.mqa_head_dim, 576);
  EXPECT_EQ(instances.mha_head_dim, 192);
  EXPECT_EQ(instances.mha_v_head_dim, 128);
}

TEST(SkipCorrection, OnlyMlaOnSm100AndSm103_KeepsIt) {
  EXPECT_EQ(skip_correction_threshold(100, true, 8).effective, 8);
  EXPECT_EQ(skip_correction_threshold(103, true, 8).effective, 8);
  EXPECT_TRUE(skip_correction_threshold(101, true, 8).warning);
  EXPECT_EQ(skip_correction_threshold(101, true, 8).effective, 0);
  EXPECT_FALSE(skip_correction_threshold(90, true, 0).warning);
  EXPECT_FALSE(skip_correction_threshold(100, false, 8).warning);
  EXPECT_EQ(skip_correction_threshold(100, false, 8).effective, 0);
}

}  // namespace
}  // namespace kernelpath::engines::trtllm
