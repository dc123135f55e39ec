#include "engines/trtllm/flashinfer_kernels.h"

#include <gtest/gtest.h>

namespace kernelpath::engines::trtllm {
namespace {

FlashInferRequest request_on(hardware::Capability capability) {
  FlashInferRequest request;
  request.capability = capability;
  request.num_heads = 16;
  request.num_kv_heads = 8;
  request.head_dim = 128;
  return request;
}

TEST(FlashInferDecode, Fa2_IsKeptOnlyOnHopper) {
  EXPECT_EQ(flashinfer_kernels(request_on({9, 0})).decode, "fa2");
  EXPECT_EQ(flashinfer_kernels(request_on({9, 1})).decode, "auto");
  EXPECT_EQ(flashinfer_kernels(request_on({8, 0})).decode, "auto");
  FlashInferRequest named = request_on({8, 0});
  named.kernel = "fa3";
  EXPECT_EQ(flashinfer_kernels(named).decode, "fa3");
  EXPECT_EQ(flashinfer_kernels(named).prefill->backend, "fa3");
}

TEST(FlashInferTensorCores, EachReason_SufficesAlone) {
  const FlashInferRequest base = request_on({10, 0});
  EXPECT_EQ(flashinfer_kernels(base).use_tensor_cores, false);
  FlashInferRequest request = base;
  request.fp8_kv = true;
  EXPECT_EQ(flashinfer_kernels(request).use_tensor_cores, true);
  request = base;
  request.num_heads = 31;
  EXPECT_EQ(flashinfer_kernels(request).use_tensor_cores, false);
  request.num_heads = 32;
  EXPECT_EQ(flashinfer_kernels(request).use_tensor_cores, true);
  request = base;
  request.cuda_graph = true;
  EXPECT_EQ(flashinfer_kernels(request).use_tensor_cores, false);
  request.head_dim = 129;
  EXPECT_EQ(flashinfer_kernels(request).use_tensor_cores, true);
  request.cuda_graph = false;
  EXPECT_EQ(flashinfer_kernels(request).use_tensor_cores, false);
  request = base;
  request.kernel = "trtllm-gen";
  EXPECT_EQ(flashinfer_kernels(request).use_tensor_cores, true);
}

TEST(FlashInferWithoutCache, Kernels_AreRagged) {
  FlashInferRequest request = request_on({9, 0});
  request.has_kv_cache_manager = false;
  EXPECT_EQ(flashinfer_kernels(request).prefill->backend, "cudnn");
  EXPECT_EQ(flashinfer_kernels(request).prefill->layout, "NHD");
  EXPECT_FALSE(flashinfer_kernels(request).decode);
  request.multi_item = true;
  EXPECT_EQ(flashinfer_kernels(request).prefill->wrapper, "paged(page_size=1)");
  request.cuda_graph = true;
  EXPECT_EQ(flashinfer_kernels(request).error->code, "FI-MULTI-ITEM-CUDA-GRAPH");
  request.multi_item = false;
  EXPECT_FALSE(flashinfer_kernels(request).error);
  request.fp8_kv = true;
  EXPECT_EQ(flashinfer_kernels(request).error->code, "FI-FP8-WITHOUT-CACHE");
}

TEST(FlashInferMultiItem, WithACacheManager_IsRefused) {
  FlashInferRequest request = request_on({9, 0});
  request.multi_item = true;
  EXPECT_EQ(flashinfer_kernels(request).error->code, "FI-MULTI-ITEM-PAGED");
}

TEST(FlashInferCustomMask, OnTrtllmGen_DependsOnOwnKeys) {
  FlashInferRequest request = request_on({10, 0});
  request.custom_mask = true;
  EXPECT_EQ(flashinfer_kernels(request).prefill->backend, "fa2");
  request.kernel = "trtllm-gen";
  EXPECT_EQ(flashinfer_kernels(request).prefill->backend, "triton");
  request.context_rows = false;
  EXPECT_EQ(flashinfer_kernels(request).prefill->backend, "trtllm-gen");
  request.context_rows = true;
  request.kv_shared = true;
  EXPECT_TRUE(flashinfer_kernels(request).prefill->custom_mask_becomes_causal);
  EXPECT_EQ(flashinfer_kernels(request).prefill->backend, "trtllm-gen");
}

TEST(FlashInferFp8, TrtllmGenCastsTheQuery_OthersDoNot) {
  FlashInferRequest request = request_on({10, 0});
  request.fp8_kv = true;
  EXPECT_FALSE(flashinfer_kernels(request).q_cast_to_fp8);
  request.kernel = "trtllm-gen";
  EXPECT_TRUE(flashinfer_kernels(request).q_cast_to_fp8);
}

TEST(FlashInferWindow, Left_ExcludesTheTokenItself) {
  EXPECT_EQ(flashinfer_window_left(4096), 4095);
}

TEST(FlashInferMla, Phases_HaveTheirWrappers) {
  EXPECT_EQ(flashinfer_mla_kernels().context, "ragged prefill");
  EXPECT_EQ(flashinfer_mla_kernels().generation, "paged MLA decode");
}

}  // namespace
}  // namespace kernelpath::engines::trtllm
