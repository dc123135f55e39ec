#include "engines/trtllm/fmha.h"

#include <gtest/gtest.h>

#include <utility>

namespace kernelpath::engines::trtllm {
namespace {

using Names = std::vector<std::string>;

FmhaLayer gqa(int sm) {
  FmhaLayer layer;
  layer.sm = sm;
  layer.num_heads = 32;
  layer.num_kv_heads = 8;
  layer.head_dim = 128;
  return layer;
}

FmhaLayer latent(int sm, std::int64_t heads) {
  FmhaLayer layer;
  layer.sm = sm;
  layer.mla = true;
  layer.num_heads = heads;
  layer.num_kv_heads = 1;
  layer.head_dim = 576;
  layer.kv_lora_rank = 512;
  layer.qk_rope_head_dim = 64;
  return layer;
}

FmhaRequest batch(std::int64_t contexts, std::int64_t generations) {
  FmhaRequest request;
  request.num_contexts = contexts;
  request.num_generations = generations;
  return request;
}

FmhaRequest mla_decode(std::int64_t generations, std::int64_t seq_len_q, DataType kv) {
  FmhaRequest request = batch(0, generations);
  request.input = FmhaInput::kGenerationOnly;
  request.kv = kv;
  request.seq_len_q = seq_len_q;
  request.tokens_per_block = 64;
  return request;
}

std::string gen_refusal(const FmhaLayer& layer, const FmhaRequest& request) {
  return std::string(fmha_refusal("flashinfer_trtllm_gen", layer, request, FmhaPhase::kWhole));
}

std::string dsl_refusal(const FmhaLayer& layer, const FmhaRequest& request) {
  return std::string(fmha_refusal("cute_dsl_mla", layer, request, FmhaPhase::kGeneration));
}

// --- TLLM_FMHA_LIBS
// -------------------------------------------------------------------------------

TEST(ParseFmhaLibs, BlankAndBareCommas_GiveTheDefault) {
  const Names standard = parse_fmha_libs(std::nullopt).names;
  EXPECT_EQ(standard.size(), fmha_libraries().size() - 1);
  EXPECT_EQ(parse_fmha_libs(" \t").names, standard);
  EXPECT_EQ(parse_fmha_libs(" , ,").names, standard);
}

TEST(ParseFmhaLibs, Deltas_KeepTheCanonicalOrder) {
  EXPECT_EQ(parse_fmha_libs(" + prims_ts , -fallback ").names,
            (Names{"triton_custom_mask", "prims_ts", "cute_dsl_mla", "msa_sparse_gqa",
                   "flashinfer_sparse_mla", "flashinfer_trtllm_gen"}));
  EXPECT_EQ(parse_fmha_libs("-fallback,+fallback").names, parse_fmha_libs("").names);
}

TEST(ParseFmhaLibs, PlainNames_AreTheList) {
  EXPECT_EQ(parse_fmha_libs("fallback, prims_ts,fallback").names, (Names{"fallback", "prims_ts"}));
}

TEST(ParseFmhaLibs, Faults_HaveStableIds) {
  EXPECT_EQ(parse_fmha_libs("fallback,-prims_ts").error->code, "FMHA-ENV-MIXED");
  EXPECT_EQ(parse_fmha_libs("+").error->code, "FMHA-ENV-EMPTY");
  EXPECT_EQ(parse_fmha_libs("-fallback,- ").error->code, "FMHA-ENV-EMPTY");
  EXPECT_EQ(parse_fmha_libs("Fallback").error->code, "FMHA-ENV-UNKNOWN:Fallback");
  const FmhaList typo = parse_fmha_libs("-falback");
  EXPECT_EQ(typo.error->code, "FMHA-ENV-UNKNOWN:falback");
  ASSERT_FALSE(typo.error->near_matches.empty());
  EXPECT_EQ(typo.error->near_matches.front(), "fallback");
}

// --- availability
// ---------------------------------------------------------------------------------

TEST(FmhaAvailability, TrtllmGen_NeedsSm100OrSm103) {
  for (const int sm : {90, 101, 110, 120}) {
    EXPECT_NE(fmha_unavailable_reason("flashinfer_trtllm_gen", gqa(sm), false), "") << sm;
  }
  for (const int sm : {100, 103}) {
    EXPECT_EQ(fmha_unavailable_reason("flashinfer_trtllm_gen", gqa(sm), false), "") << sm;
  }
}

TEST(FmhaAvailability, EachMissingNeed_HasAReason) {
  FmhaLayer layer = gqa(100);
  layer.flashinfer_available = false;
  EXPECT_EQ(fmha_unavailable_reason("flashinfer_trtllm_gen", layer, false),
            "package flashinfer is not installed");
  layer = gqa(100);
  layer.native_ops_available = false;
  EXPECT_NE(fmha_unavailable_reason("flashinfer_trtllm_gen", layer, false), "");
  layer = gqa(100);
  layer.num_heads = 71;
  EXPECT_EQ(fmha_unavailable_reason("flashinfer_trtllm_gen", layer, false),
            "71 heads do not divide by 8 KV heads");
  layer = gqa(100);
  layer.sparse_algorithm = "skip_softmax";
  EXPECT_NE(fmha_unavailable_reason("flashinfer_trtllm_gen", layer, false), "");
  EXPECT_EQ(fmha_unavailable_reason("fallback", layer, false), "");
}

TEST(FmhaAvailability, CuteDsl_NeedsItsGeometry) {
  EXPECT_EQ(fmha_unavailable_reason("cute_dsl_mla", latent(100, 128), false), "");
  EXPECT_NE(fmha_unavailable_reason("cute_dsl_mla", latent(100, 129), false), "");
  FmhaLayer layer = latent(103, 96);
  layer.kv_lora_rank = 256;
  EXPECT_NE(fmha_unavailable_reason("cute_dsl_mla", layer, false), "");
  layer = latent(103, 96);
  layer.sparse_algorithm = "dsa";
  EXPECT_NE(fmha_unavailable_reason("cute_dsl_mla", layer, false), "");
  EXPECT_NE(fmha_unavailable_reason("cute_dsl_mla", gqa(100), false), "");
  EXPECT_NE(fmha_unavailable_reason("cute_dsl_mla", latent(90, 128), false), "");
}

TEST(FmhaAvailability, SparseMlaOnSm120_NeedsItsCacheType) {
  FmhaLayer layer = latent(120, 128);
  layer.sparse_algorithm = "dsa";
  const auto select = [&] {
    return select_fmha(layer, mla_decode(8, 1, DataType::kFp8), std::nullopt);
  };
  EXPECT_EQ(select().error->code, "NO-FMHA");
  layer.kv_cache_dtype = "fp8_ds_mla";
  EXPECT_EQ(select().impl, "flashinfer_sparse_mla");
  layer.sm = 100;
  EXPECT_EQ(select().error->code, "NO-FMHA");
}

TEST(FmhaAvailability, SkipCorrection_LeavesOnlyFallback) {
  FmhaLayer layer = latent(100, 128);
  layer.skip_correction_threshold = 8;
  const FmhaSelection selection =
      select_fmha(layer, mla_decode(64, 1, DataType::kFp8), std::nullopt);
  EXPECT_EQ(selection.available, Names{"fallback"});
  EXPECT_EQ(selection.impl, "fallback");
}

// --- flashinfer_trtllm_gen
// ------------------------------------------------------------------------

TEST(TrtllmGenRefusal, SmallBf16Context_HasItsBounds) {
  EXPECT_EQ(gen_refusal(gqa(100), batch(4, 0)), "SMALL-BF16-CONTEXT");
  EXPECT_EQ(gen_refusal(gqa(100), batch(5, 0)), "");
  EXPECT_EQ(gen_refusal(gqa(100), batch(4, 1)), "");
  FmhaLayer wide = gqa(100);
  wide.head_dim = 512;
  EXPECT_EQ(gen_refusal(wide, batch(1, 0)), "");
  FmhaRequest half = batch(1, 0);
  half.q = half.kv = half.output = DataType::kFp16;
  EXPECT_EQ(gen_refusal(gqa(100), half), "");
  FmhaRequest low = batch(1, 0);
  low.kv = DataType::kNvfp4;
  EXPECT_EQ(gen_refusal(gqa(100), low), "");
}

TEST(TrtllmGenRefusal, EachFlag_HasItsId) {
  const std::pair<bool FmhaRequest::*, std::string> flags[] = {
      {&FmhaRequest::helix, "HELIX"},         {&FmhaRequest::relative_attention_bias, "REL-BIAS"},
      {&FmhaRequest::spec_tree, "SPEC-TREE"}, {&FmhaRequest::custom_mask, "CTX-CUSTOM-MASK"},
      {&FmhaRequest::alibi, "CTX-ALIBI"},
  };
  for (const auto& [flag, id] : flags) {
    FmhaRequest request = batch(8, 8);
    request.*flag = true;
    EXPECT_EQ(gen_refusal(gqa(100), request), id);
  }
  FmhaRequest request = batch(8, 8);
  request.paged = false;
  EXPECT_EQ(gen_refusal(gqa(100), request), "NON-PAGED");
  request = batch(8, 8);
  request.fused_qkv = false;
  EXPECT_EQ(gen_refusal(gqa(100), request), "NEEDS-FUSED-QKV");
}

TEST(TrtllmGenRefusal, OrderOfChecks_IsTheEngines) {
  FmhaRequest request = batch(1, 0);
  request.helix = true;
  request.alibi = true;
  EXPECT_EQ(gen_refusal(gqa(100), request), "SMALL-BF16-CONTEXT");
  request.num_contexts = 8;
  EXPECT_EQ(gen_refusal(gqa(100), request), "HELIX");
  request.helix = false;
  EXPECT_EQ(gen_refusal(gqa(100), request), "CTX-ALIBI");
  FmhaLayer narrow = gqa(100);
  narrow.head_dim = 72;
  EXPECT_EQ(gen_refusal(narrow, request), "CTX-HEAD-DIM");
}

TEST(TrtllmGenRefusal, BlockSizes_HaveTwoIds) {
  const std::pair<std::int64_t, std::string> cases[] = {
      {4, "GEN-BLOCK"},         {7, "GEN-BLOCK"}, {8, "TOKENS-PER-BLOCK"},  {16, ""}, {32, ""},
      {48, "TOKENS-PER-BLOCK"}, {64, ""},         {128, "TOKENS-PER-BLOCK"}};
  for (const auto& [block, id] : cases) {
    FmhaRequest request = batch(0, 8);
    request.tokens_per_block = block;
    EXPECT_EQ(gen_refusal(gqa(100), request), id) << block;
  }
}

TEST(TrtllmGenRefusal, GroupOf32_IsTheLargest) {
  FmhaLayer layer = gqa(100);
  layer.num_kv_heads = 1;
  EXPECT_EQ(gen_refusal(layer, batch(8, 8)), "");
  layer.num_heads = 33;
  EXPECT_EQ(gen_refusal(layer, batch(8, 8)), "GEN-GQA-RATIO");
}

TEST(TrtllmGenRefusal, DtypeTriples_DifferByPhase) {
  FmhaRequest request = batch(0, 8);
  request.kv = DataType::kFp8;
  const auto phase = [&](FmhaPhase which) {
    return std::string(fmha_refusal("flashinfer_trtllm_gen", gqa(100), request, which));
  };
  // Generation alone keeps the 16-bit query; a context phase makes it FP8, which also fits.
  EXPECT_EQ(phase(FmhaPhase::kGeneration), "");
  EXPECT_EQ(phase(FmhaPhase::kContext), "");
  request.output = DataType::kFp16;
  EXPECT_EQ(phase(FmhaPhase::kGeneration), "GEN-DTYPES");
  EXPECT_EQ(phase(FmhaPhase::kContext), "");
  request.kv = DataType::kFp16;
  EXPECT_EQ(phase(FmhaPhase::kContext), "CTX-DTYPES");
  request.output = DataType::kNvfp4;
  EXPECT_EQ(phase(FmhaPhase::kWhole), "OUTPUT-DTYPE");
  request.q = DataType::kFp32;
  EXPECT_EQ(phase(FmhaPhase::kWhole), "INPUT-DTYPE");
  request.q = DataType::kFp16;
  request.output = DataType::kFp16;
  request.kv = DataType::kFp32;
  EXPECT_EQ(phase(FmhaPhase::kWhole), "KV-DTYPE");
}

TEST(TrtllmGenRefusal, Mla_NeedsKnownDimensionsAndNoContext) {
  const auto generation = [](const FmhaLayer& layer, const FmhaRequest& request) {
    return std::string(
        fmha_refusal("flashinfer_trtllm_gen", layer, request, FmhaPhase::kGeneration));
  };
  FmhaRequest request = mla_decode(8, 1, DataType::kBf16);
  EXPECT_EQ(generation(latent(100, 128), request), "");
  request.tokens_per_block = 32;
  EXPECT_EQ(generation(latent(100, 128), request), "MLA-SLOWER-32");
  FmhaLayer small = latent(100, 128);
  small.kv_lora_rank = 256;
  small.head_dim = 320;
  EXPECT_EQ(generation(small, request), "");
  small.head_dim = 576;
  EXPECT_EQ(generation(small, request), "MLA-DIMS");
  request = batch(8, 0);
  request.input = FmhaInput::kContextOnly;
  EXPECT_EQ(fmha_refusal("flashinfer_trtllm_gen", latent(100, 128), request, FmhaPhase::kContext),
            "MLA-CONTEXT");
}

// --- cute_dsl_mla
// ---------------------------------------------------------------------------------

TEST(CuteDslRefusal, MinimumBatch_HoldsForEachRow) {
  struct Row {
    std::int64_t heads;
    std::int64_t seq_len_q;
    std::int64_t batch;
  };
  const Row rows[] = {{6, 1, 1},   {12, 1, 1}, {16, 2, 64},  {16, 4, 32},
                      {16, 8, 16}, {96, 1, 1}, {128, 1, 64}, {128, 2, 32}};
  for (const Row& row : rows) {
    const FmhaLayer layer = latent(100, row.heads);
    EXPECT_EQ(dsl_refusal(layer, mla_decode(row.batch, row.seq_len_q, DataType::kFp8)), "");
    const std::string below =
        dsl_refusal(layer, mla_decode(row.batch - 1, row.seq_len_q, DataType::kFp8));
    EXPECT_EQ(below, row.batch == 1 ? "MIXED-BATCH" : "PERF-BATCH") << row.heads;
  }
  EXPECT_EQ(dsl_refusal(latent(100, 16), mla_decode(64, 1, DataType::kFp8)), "PERF-SHAPE");
  EXPECT_EQ(dsl_refusal(latent(100, 128), mla_decode(64, 3, DataType::kFp8)), "PERF-SHAPE");
}

TEST(CuteDslRefusal, SixteenBitCache_NeedsListedHeads) {
  for (const std::int64_t heads : {6, 12, 16, 96}) {
    EXPECT_EQ(dsl_refusal(latent(100, heads), mla_decode(1, 1, DataType::kBf16)), "") << heads;
  }
  EXPECT_EQ(dsl_refusal(latent(100, 128), mla_decode(64, 1, DataType::kBf16)), "PERF-HEADS");
  EXPECT_EQ(dsl_refusal(latent(100, 16), mla_decode(1, 1, DataType::kFp16)), "KV-DTYPE");
}

TEST(CuteDslRefusal, EachLimit_HasItsId) {
  const FmhaLayer layer = latent(100, 128);
  FmhaRequest request = mla_decode(64, 1, DataType::kFp8);
  request.num_contexts = 1;
  EXPECT_EQ(dsl_refusal(layer, request), "MIXED-BATCH");
  EXPECT_EQ(dsl_refusal(latent(100, 96), request), "");
  request = mla_decode(64, 1, DataType::kFp8);
  request.beam_width = 2;
  EXPECT_EQ(dsl_refusal(layer, request), "BEAM");
  request = mla_decode(64, 1, DataType::kFp8);
  request.spec_tree = true;
  EXPECT_EQ(dsl_refusal(layer, request), "TREE");
  request = mla_decode(32, 2, DataType::kFp8);
  request.helix = true;
  EXPECT_EQ(dsl_refusal(layer, request), "HELIX-QUERY");
  request = batch(8, 0);
  request.input = FmhaInput::kContextOnly;
  EXPECT_EQ(dsl_refusal(layer, request), "PHASE");
}

// --- fallback and the walk
// ------------------------------------------------------------------------

TEST(FallbackRefusal, EachLimit_HasItsId) {
  const auto refusal = [](const FmhaRequest& request) {
    return std::string(fmha_refusal("fallback", gqa(90), request, FmhaPhase::kWhole));
  };
  EXPECT_EQ(refusal(batch(1, 1)), "");
  FmhaRequest request = batch(1, 1);
  request.q = DataType::kFp8;
  EXPECT_EQ(refusal(request), "FP8-QUERY");
  request = batch(1, 1);
  request.custom_mask = true;
  EXPECT_EQ(refusal(request), "CTX-CUSTOM-MASK");
  request = batch(1, 1);
  request.update_kv_cache = false;
  EXPECT_EQ(refusal(request), "NO-CACHE-UPDATE");
}

TEST(SelectFmha, RefusedContext_SendsTheWholeMixedBatchToFallback) {
  FmhaLayer layer = gqa(100);
  layer.head_dim = 96;
  EXPECT_EQ(select_fmha(layer, batch(2, 16), std::nullopt).impl, "fallback");
  // A generation-only batch is refused as a whole and then served by phase.
  const FmhaSelection decode = select_fmha(layer, batch(0, 16), std::nullopt);
  EXPECT_EQ(decode.impl, "flashinfer_trtllm_gen");
  ASSERT_EQ(decode.rejected.size(), 1u);
  EXPECT_EQ(decode.rejected[0].rule, "CTX-HEAD-DIM");
}

TEST(SelectFmha, CustomMaskContext_IsCombinedWithGeneration) {
  FmhaRequest request = batch(8, 8);
  request.custom_mask = true;
  const FmhaSelection selection = select_fmha(gqa(100), request, std::nullopt);
  EXPECT_EQ(selection.context_impl, "triton_custom_mask");
  EXPECT_EQ(selection.generation_impl, "flashinfer_trtllm_gen");
  EXPECT_EQ(selection.impl, "combined(triton_custom_mask, flashinfer_trtllm_gen)");
  EXPECT_EQ(select_fmha(gqa(100), request, "fallback").error->code, "NO-FMHA");
}

TEST(SelectFmha, EmptyBatchAndBadList_AreErrors) {
  EXPECT_EQ(select_fmha(gqa(90), batch(0, 0), std::nullopt).error->code, "NO-FMHA");
  EXPECT_EQ(select_fmha(gqa(90), batch(1, 0), "nope").error->code, "FMHA-ENV-UNKNOWN:nope");
  EXPECT_EQ(select_fmha(gqa(90), batch(1, 0), "-fallback").error->code, "NO-FMHA");
}

TEST(SelectFmha, MixedMlaCall_HasNoLibrary) {
  EXPECT_EQ(select_fmha(latent(90, 128), batch(1, 1), std::nullopt).error->code, "MLA-MIXED-CALL");
}

TEST(SelectFmha, PagedContext_IsRefusedOnlyWhereTheKernelIsMissing) {
  FmhaLayer layer = gqa(103);
  layer.head_dim = 64;
  FmhaRequest request = batch(1, 4);
  request.paged_context = true;
  request.fused_context_kernel_exists = false;
  const std::string only_fallback = "fallback";
  EXPECT_EQ(select_fmha(layer, request, only_fallback).error->code, "PAGED-CONTEXT-REFUSED");
  request.fused_context_kernel_exists = true;
  EXPECT_EQ(select_fmha(layer, request, only_fallback).impl, "fallback");
  request.fused_context_kernel_exists = false;
  layer.sm = 100;
  EXPECT_EQ(select_fmha(layer, request, only_fallback).impl, "fallback");
}

// --- cache buckets
// --------------------------------------------------------------------------------

TEST(FmhaBuckets, GridPoints_StandAtAndBelowEachCandidate) {
  EXPECT_EQ(fmha_batch_bucket(0), 0);
  EXPECT_EQ(fmha_batch_bucket(24), 24);
  EXPECT_EQ(fmha_batch_bucket(33), 35);
  EXPECT_EQ(fmha_batch_bucket(36), 36);
  EXPECT_EQ(fmha_batch_bucket(2049), 2048);
  EXPECT_EQ(fmha_query_bucket(3), 3);
  EXPECT_EQ(fmha_query_bucket(5), 7);
  EXPECT_EQ(fmha_query_bucket(9), 31);
  EXPECT_EQ(fmha_query_bucket(200), 128);
}

TEST(FmhaCacheKey, ContextOnlyCall_HasNoQueryLength) {
  FmhaRequest request = batch(3, 9);
  request.seq_len_q = 4;
  EXPECT_EQ(fmha_cache_key(request, false, false).generation_seq_len_q, 4);
  request.input = FmhaInput::kContextOnly;
  EXPECT_EQ(fmha_cache_key(request, false, false).generation_seq_len_q, 0);
  EXPECT_NE(fmha_cache_key(request, true, false), fmha_cache_key(request, false, false));
}

TEST(DataTypes, Names_ReadBack) {
  for (const DataType type :
       {DataType::kBf16, DataType::kFp16, DataType::kFp8, DataType::kNvfp4, DataType::kFp32}) {
    EXPECT_EQ(parse_data_type(data_type_name(type)), type);
  }
  EXPECT_EQ(parse_data_type("torch.bfloat16"), DataType::kBf16);
  EXPECT_EQ(parse_data_type("int4"), std::nullopt);
}

}  // namespace
}  // namespace kernelpath::engines::trtllm
