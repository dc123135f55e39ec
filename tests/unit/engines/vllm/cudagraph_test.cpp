#include "cache_case.h"
#include "engines/vllm/layer_checks.h"
#include "engines/vllm/rules_kv_cache.h"

#include <gtest/gtest.h>

#include <set>

namespace kernelpath::engines::vllm {
namespace {

// The level of one backend with plain layers.
std::string_view level(CacheCase& run, std::string_view member) {
  run.attention(member);
  const KvCachePlan plan = run.plan();
  return graph_level_name(run.graphs(plan).min_support);
}

TEST(GraphLevel, FlashAttention_DependsOnItsVersion) {
  CacheCase hopper("0.25.1");
  EXPECT_EQ(level(hopper, "FLASH_ATTN"), "ALWAYS");
  CacheCase ampere("0.25.1", 8, 0);
  EXPECT_EQ(level(ampere, "FLASH_ATTN"), "UNIFORM_BATCH");
  CacheCase blackwell("0.25.1", 10, 0);
  EXPECT_EQ(level(blackwell, "FLASH_ATTN"), "UNIFORM_BATCH");
  CacheCase later("0.33.0", 10, 0);
  EXPECT_EQ(level(later, "FLASH_ATTN"), "ALWAYS");
}

TEST(GraphLevel, FlashAttention_IsAskedBeforeTheUsersVersionIsKnown) {
  CacheCase run("0.25.1");
  run.settings.flash_attn_version = 2;
  EXPECT_EQ(level(run, "FLASH_ATTN"), "ALWAYS");
}

TEST(GraphLevel, FlashInferOf0251_NeedsTrtllmGen) {
  CacheCase blackwell("0.25.1", 10, 0);
  EXPECT_EQ(level(blackwell, "FLASHINFER"), "UNIFORM_BATCH");
  CacheCase off("0.25.1", 10, 0);
  off.settings.use_trtllm_attention = false;
  EXPECT_EQ(level(off, "FLASHINFER"), "UNIFORM_SINGLE_TOKEN_DECODE");
  CacheCase hopper("0.25.1");
  EXPECT_EQ(level(hopper, "FLASHINFER"), "UNIFORM_SINGLE_TOKEN_DECODE");
}

TEST(GraphLevel, FlashInferOf0330_TakesXqaAndFlashAttention2) {
  CacheCase hopper("0.33.0");
  EXPECT_EQ(level(hopper, "FLASHINFER"), "UNIFORM_BATCH");
  CacheCase ampere("0.33.0", 8, 0);
  EXPECT_EQ(level(ampere, "FLASHINFER"), "UNIFORM_BATCH");
  CacheCase parallel("0.33.0");
  parallel.run.dcp = 2;
  EXPECT_EQ(level(parallel, "FLASHINFER"), "UNIFORM_SINGLE_TOKEN_DECODE");
}

TEST(GraphLevel, XqaWithAnOddHeadSize_IsSingleToken) {
  CacheCase run("0.33.0");
  run.attention("FLASHINFER").head_size = 512;
  const KvCachePlan plan = run.plan();
  EXPECT_EQ(run.graphs(plan).min_support, GraphLevel::kSingleTokenDecode);
}

TEST(GraphLevel, Hpc_IsRaisedBySpeculation) {
  CacheCase plain("0.25.1");
  EXPECT_EQ(level(plain, "HPC_ATTN"), "UNIFORM_SINGLE_TOKEN_DECODE");
  CacheCase speculating("0.25.1");
  speculating.run.speculative_tokens = 2;
  EXPECT_EQ(level(speculating, "HPC_ATTN"), "UNIFORM_BATCH");
}

TEST(GraphLevel, ChunkedLayers_HaveNone) {
  CacheCase run("0.25.1");
  run.attention("TRITON_ATTN").chunk = 8192;
  run.layers[0].class_name = "ChunkedLocalAttention_8192_TritonAttentionBackend";
  const KvCachePlan plan = run.plan();
  run.run.cudagraph_mode = "FULL_AND_PIECEWISE";
  const GraphPlan graphs = run.graphs(plan);
  EXPECT_EQ(graphs.final_mode, "PIECEWISE");
  EXPECT_EQ(graphs.limited_by, "ChunkedLocalAttention_8192_TritonAttentionBackend");
}

TEST(GraphLevel, CompositeWithAWindow_HasNone) {
  CacheCase run("0.33.0");
  run.attention("TRITON_FLASH_ATTN", 2);
  for (BuiltLayer& layer : run.layers) layer.head_size = 256;
  const KvCachePlan plain = run.plan();
  EXPECT_EQ(run.graphs(plain).min_support, GraphLevel::kSingleTokenDecode);
  run.layers[0].window = 1024;
  const KvCachePlan windowed = run.plan();
  EXPECT_EQ(run.graphs(windowed).min_support, GraphLevel::kNever);
  run.layers[0].clamps_prefix_mask = true;
  const KvCachePlan clamped = run.plan();
  EXPECT_EQ(run.graphs(clamped).min_support, GraphLevel::kSingleTokenDecode);
}

// The mode of a run that asks for `mode` with one backend.
GraphPlan resolved(CacheCase& run, std::string_view member, std::string_view mode) {
  run.attention(member);
  const KvCachePlan plan = run.plan();
  run.run.cudagraph_mode = mode;
  return run.graphs(plan);
}

TEST(GraphMode, FullOnAWeakerBackend_BecomesPiecewiseBeside) {
  CacheCase run("0.25.1", 8, 0);
  const GraphPlan graphs = resolved(run, "FLASH_ATTN", "FULL");
  EXPECT_EQ(graphs.final_mode, "FULL_AND_PIECEWISE");
  ASSERT_EQ(graphs.events.size(), 1U);
  EXPECT_EQ(graphs.events[0].rule, "VLLM-GRAPH-MIXED-BATCH");
}

TEST(GraphMode, FullWithoutCompilation_BecomesDecodeOnly) {
  CacheCase run("0.25.1", 8, 0);
  run.run.piecewise_compilation = false;
  EXPECT_EQ(resolved(run, "FLASH_ATTN", "FULL").final_mode, "FULL_DECODE_ONLY");
}

TEST(GraphMode, FullOnABackendWithoutGraphs_IsRefused) {
  CacheCase run("0.25.1");
  run.machine.platform = hardware::Platform::kCpu;
  const GraphPlan graphs = resolved(run, "CPU_ATTN", "FULL");
  ASSERT_TRUE(graphs.error);
  EXPECT_EQ(graphs.error->type, "ValueError");
}

TEST(GraphMode, SpeculationOnSingleTokenDecodes_BecomesPiecewise) {
  CacheCase run("0.25.1");
  run.run.speculative_tokens = 3;
  const GraphPlan graphs = resolved(run, "FLASHINFER", "FULL_AND_PIECEWISE");
  EXPECT_EQ(graphs.final_mode, "PIECEWISE");
  EXPECT_EQ(graphs.uniform_decode_query_len, 4);
  EXPECT_EQ(graphs.events.back().rule, "VLLM-GRAPH-SPECULATION");
}

// The configured mode of a run.
std::string configured(CacheCase& run, const GraphModel& model = {}) {
  configure_graphs(run.context(), model, run.run);
  return run.run.cudagraph_mode;
}

TEST(GraphConfig, LevelsOfOptimisation_HaveTheirModes) {
  const char* modes[] = {"NONE", "PIECEWISE", "FULL_AND_PIECEWISE", "FULL_AND_PIECEWISE"};
  for (int i = 0; i < 4; ++i) {
    CacheCase run("0.25.1");
    run.run.optimization_level = i;
    EXPECT_EQ(configured(run), modes[i]);
  }
}

TEST(GraphConfig, WithoutCompilation_PiecewisePartsAreDropped) {
  CacheCase before("0.25.1");
  before.run.piecewise_compilation = false;
  EXPECT_EQ(configured(before), "NONE");
  CacheCase after("0.33.0");
  after.run.piecewise_compilation = false;
  EXPECT_EQ(configured(after), "FULL_DECODE_ONLY");
}

TEST(GraphConfig, ModelsAndConnectors_LowerTheMode) {
  CacheCase pooling("0.25.1");
  EXPECT_EQ(configured(pooling, {.pooling = true}), "PIECEWISE");
  CacheCase encoder("0.25.1");
  EXPECT_EQ(configured(encoder, {.encoder_decoder = true}), "FULL_DECODE_ONLY");
  CacheCase connector("0.25.1");
  EXPECT_EQ(configured(connector, {.connector_needs_piecewise = true}), "PIECEWISE");
  CacheCase eager("0.25.1");
  eager.run.enforce_eager = true;
  EXPECT_EQ(configured(eager), "NONE");
}

TEST(ContextParallelism, ImplementationWithoutLse_IsNamed) {
  CacheCase run("0.25.1");
  run.attention("TRITON_ATTN");
  run.run.dcp = 2;
  const auto error = check_context_parallel(run.context(), run.run, run.layers);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->stage, "dcp");
  EXPECT_NE(error->text.find("TritonAttentionImpl"), std::string::npos);
}

TEST(ContextParallelism, ImplementationWithLse_Passes) {
  CacheCase run("0.25.1");
  run.attention("FLASH_ATTN");
  run.run.dcp = 2;
  EXPECT_FALSE(check_context_parallel(run.context(), run.run, run.layers));
  run.run.speculative_tokens = 2;
  run.run.cp_interleave = 2;
  const auto error = check_context_parallel(run.context(), run.run, run.layers);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->rule, "VLLM-DCP-INTERLEAVE-SPECULATION");
}

TEST(MetadataBuilder, FlashInferWithAWindowOnHopper_FailsUntil0320) {
  for (const std::string version : {"0.25.1", "0.33.0"}) {
    CacheCase run(version);
    run.attention("FLASHINFER").window = 4096;
    const auto error = check_metadata_builders(run.context(), run.run, run.layers);
    EXPECT_EQ(error.has_value(), version == "0.25.1");
  }
}

TEST(DecodeThreshold, Speculation_LengthensWhatIsADecode) {
  CacheCase run("0.25.1");
  run.run.speculative_tokens = 3;
  const auto threshold = [&](std::string_view member) {
    return decode_query_threshold(run.context(), run.run,
                                  *run.profile.find_member(member)->backend);
  };
  EXPECT_EQ(threshold("FLASHMLA"), 128);
  EXPECT_EQ(threshold("FLASH_ATTN_MLA"), 512);
  EXPECT_EQ(threshold("FLASHINFER_MLA"), 4);
  EXPECT_EQ(threshold("CUTLASS_MLA"), 1);
  EXPECT_EQ(threshold("FLASHINFER"), 1);
  EXPECT_EQ(threshold("FLASH_ATTN"), std::nullopt);
}

TEST(Rewrites, FieldsThatChanged_AreSpeltAsInPython) {
  RunConfig before;
  RunConfig after = before;
  after.cache_dtype = "fp8";
  after.flash_attn_version = 2;
  after.skip_layers = {"0", "1"};
  after.mamba_page_size_padded = 4096;
  after.prefix_caching = false;
  after.cudagraph_mode = "PIECEWISE";
  const std::vector<std::string> expected = {
      "kv_cache_dtype: auto -> fp8",
      "flash_attn_version: None -> 2",
      "kv_cache_dtype_skip_layers: [] -> ['0', '1']",
      "mamba page padded to 4096",
      "prefix caching off",
      "cudagraph_mode (backend): FULL_AND_PIECEWISE -> PIECEWISE"};
  EXPECT_EQ(list_rewrites(before, after, "FULL_AND_PIECEWISE"), expected);
  EXPECT_TRUE(list_rewrites(before, before, "").empty());
}

TEST(KvCacheRules, Ids_AreUniqueAndExplained) {
  std::set<std::string_view> ids;
  for (const RuleInfo& rule : kv_cache_rules()) {
    EXPECT_TRUE(ids.insert(rule.id).second) << rule.id;
    EXPECT_FALSE(rule.summary.empty() || rule.why.empty() || rule.file.empty()) << rule.id;
  }
}

}  // namespace
}  // namespace kernelpath::engines::vllm
