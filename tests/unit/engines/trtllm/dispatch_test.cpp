#include "engines/trtllm/dispatch.h"

#include <gtest/gtest.h>

namespace kernelpath::engines::trtllm {
namespace {

DispatchRequest sparse(std::string name, std::string algorithm) {
  DispatchRequest request;
  request.name = std::move(name);
  request.sparse.emplace().algorithm = std::move(algorithm);
  return request;
}

std::string error_code(const DispatchDecision& decision) {
  return decision.error ? decision.error->code : "";
}

TEST(GetAttentionBackend, NameInAnyCase_IsFoundUntrimmed) {
  DispatchRequest request;
  request.name = "fLaShInFeR";
  EXPECT_EQ(get_attention_backend(request).backend_class, "FlashInferAttention");
  request.name = " TRTLLM";
  const DispatchDecision padded = get_attention_backend(request);
  EXPECT_TRUE(padded.fell_back);
  EXPECT_FALSE(padded.flashinfer_missing);
  EXPECT_EQ(padded.selected_backend, "TRTLLM");
}

TEST(GetAttentionBackend, MissingFlashInfer_FallsBackAndDropsSparse) {
  DispatchRequest request = sparse("flashinfer", "minimax_m3");
  request.flashinfer_available = false;
  const DispatchDecision decision = get_attention_backend(request);
  EXPECT_EQ(decision.backend_class, "TrtllmAttention");
  EXPECT_TRUE(decision.flashinfer_missing);
  EXPECT_TRUE(decision.sparse_dropped);
  request.flashinfer_available = true;
  EXPECT_EQ(get_attention_backend(request).backend_class, "MiniMaxM3SparseRuntimeBackend");
}

TEST(GetAttentionBackend, StrictVariant_RefusesOnlySparseFallbacks) {
  DispatchRequest request = sparse("foo", "dsa");
  request.variant = Variant::kSparseStrictFallback;
  EXPECT_EQ(error_code(get_attention_backend(request)), "SPARSE-NEEDS-KNOWN-BACKEND");
  request.sparse.reset();
  EXPECT_EQ(get_attention_backend(request).backend_class, "TrtllmAttention");
  EXPECT_EQ(error_code(get_attention_backend(sparse("foo", "dsa"))), "");
}

TEST(GetAttentionBackend, UnknownAlgorithm_IsRefusedByName) {
  EXPECT_EQ(error_code(get_attention_backend(sparse("trtllm", "nope"))),
            "SPARSE-UNSUPPORTED-TRTLLM");
  EXPECT_EQ(error_code(get_attention_backend(sparse("VANILLA", "nope"))),
            "SPARSE-UNSUPPORTED-VANILLA");
  EXPECT_EQ(error_code(get_attention_backend(sparse("FLASHINFER", "rocket"))),
            "SPARSE-UNSUPPORTED-FLASHINFER");
}

TEST(GetAttentionBackend, EverySparseAlgorithm_HasAClassOnTrtllm) {
  for (const std::string_view algorithm : sparse_algorithms()) {
    DispatchRequest request = sparse("TRTLLM", std::string(algorithm));
    request.sparse->sm = 100;
    const DispatchDecision decision = get_attention_backend(request);
    EXPECT_FALSE(decision.error) << algorithm;
    EXPECT_NE(find_capability(decision.backend_class), nullptr) << algorithm;
  }
}

struct Csa2Case {
  int sm;
  std::string compute;
  std::string backend_class;
};

TEST(GetAttentionBackend, Csa2_FollowsTheDevice) {
  const Csa2Case cases[] = {
      {89, "", ""},
      {90, "flash_mla", "CSA2FlashMLAAttention"},
      {99, "", ""},
      {100, "trtllm", "CSA2TrtllmAttention"},
      {109, "trtllm", "CSA2TrtllmAttention"},
      {110, "", ""},
      {120, "flashinfer", "CSA2FlashInferAttention"},
      {121, "flashinfer", "CSA2FlashInferAttention"},
      {122, "", ""},
  };
  for (const Csa2Case& expected : cases) {
    DispatchRequest request = sparse("TRTLLM", "csa2");
    request.sparse->sm = expected.sm;
    const DispatchDecision decision = get_attention_backend(request);
    EXPECT_EQ(decision.csa2_compute, expected.compute) << expected.sm;
    EXPECT_EQ(decision.backend_class, expected.backend_class) << expected.sm;
    EXPECT_EQ(error_code(decision), expected.compute.empty() ? "CSA2-UNSUPPORTED-SM" : "");
  }
}

TEST(GetAttentionBackend, MiniMaxMsa_NeedsItsKernels) {
  DispatchRequest request = sparse("VANILLA", "minimax_m3");
  request.sparse->implementation = "msa";
  EXPECT_EQ(error_code(get_attention_backend(request)), "MSA-UNAVAILABLE");
  request.sparse->msa_available = true;
  EXPECT_EQ(get_attention_backend(request).backend_class, "MiniMaxM3MsaSparseAttention");
}

TEST(DispatchSteps, Fallback_IsWarnedBeforeTheClass) {
  DispatchRequest request = sparse("FLASHINFER", "dsa");
  request.flashinfer_available = false;
  std::vector<Step> steps;
  append_steps(get_attention_backend(request), steps);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].rule, "TRT-ATTN-FALLBACK");
  EXPECT_EQ(steps[0].candidate, "FLASHINFER");
  EXPECT_EQ(steps[0].verdict, Verdict::kRejected);
  EXPECT_EQ(steps[0].severity, Severity::kWarn);
  EXPECT_EQ(steps[0].reason, "package flashinfer is not installed; TRTLLM is used");
  EXPECT_EQ(steps[0].source.version, "2a3c95e3");
  EXPECT_EQ(steps[1].rule, "TRT-ATTN-SPARSE-DROPPED");
  EXPECT_EQ(steps[2].rule, "TRT-ATTN-CLASS");
  EXPECT_EQ(steps[2].reason, "TrtllmAttention");
}

TEST(DispatchSteps, UnknownName_IsQuotedSafely) {
  DispatchRequest request;
  request.name = "foo\n\x1b[31m";
  std::vector<Step> steps;
  append_steps(get_attention_backend(request), steps);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].reason.find('\n'), std::string::npos);
  EXPECT_EQ(steps[0].reason.find('\x1b'), std::string::npos);
}

TEST(SparseCacheManager, Dsa_ChangesWithTheFlag) {
  EXPECT_EQ(sparse_cache_manager("dsa", false).manager_class, "DSACacheManager");
  EXPECT_EQ(sparse_cache_manager("dsa", true).manager_class, "DSACacheManagerV2");
}

TEST(SparseCacheManager, QsaAndGlm_AreRefused) {
  EXPECT_EQ(sparse_cache_manager("qsa", false).error->code, "QSA-NEEDS-V2");
  EXPECT_EQ(sparse_cache_manager("qsa", true).manager_class, "QSAMambaHybridCacheManagerV2");
  EXPECT_EQ(sparse_cache_manager("glm_kpool", true).error->code, "SPARSE-UNSUPPORTED-CACHE");
}

}  // namespace
}  // namespace kernelpath::engines::trtllm
