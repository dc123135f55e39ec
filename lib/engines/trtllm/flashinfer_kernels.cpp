#include "engines/trtllm/flashinfer_kernels.h"

#include "base/assert.h"
#include "engines/trtllm/rules_backend.h"

#include <fmt/format.h>

namespace kernelpath::engines::trtllm {
namespace {

constexpr std::string_view kDefaultKernel = "fa2";
constexpr std::string_view kTrtllmGen = "trtllm-gen";
constexpr std::int64_t kTensorCoreGroupSize = 4;
constexpr std::int64_t kLargestGraphHeadDim = 128;

EngineError refusal(std::string type, std::string code, std::string message) {
  return EngineError{.type = std::move(type),
                     .code = std::move(code),
                     .message = std::move(message),
                     .near_matches = {}};
}

void without_cache_manager(const FlashInferRequest& request, FlashInferDecision& decision) {
  if (request.fp8_kv) {
    decision.error = refusal("NotImplementedError", "FI-FP8-WITHOUT-CACHE",
                             "an FP8 KV cache needs a KV cache manager");
  } else if (!request.multi_item) {
    decision.prefill = FlashInferPrefill{"ragged", "cudnn", "NHD"};
  } else if (request.cuda_graph) {
    decision.error = refusal("NotImplementedError", "FI-MULTI-ITEM-CUDA-GRAPH",
                             "multi-item scoring cannot be captured in a CUDA graph");
  } else {
    decision.prefill = FlashInferPrefill{"paged(page_size=1)", std::string(kDefaultKernel), "NHD"};
  }
}

bool needs_tensor_cores(const FlashInferRequest& request) {
  return request.fp8_kv || request.num_heads / request.num_kv_heads >= kTensorCoreGroupSize ||
         (request.cuda_graph && request.head_dim > kLargestGraphHeadDim) ||
         request.kernel == kTrtllmGen;
}

FlashInferPrefill paged_prefill(const FlashInferRequest& request) {
  FlashInferPrefill prefill{"paged", request.kernel, "HND"};
  const bool mask_on_gen = request.kernel == kTrtllmGen && request.custom_mask;
  if (!mask_on_gen) return prefill;
  if (request.kv_shared) {
    prefill.custom_mask_becomes_causal = true;
  } else if (request.context_rows) {
    prefill = FlashInferPrefill{"triton-custom-mask", "triton", "HND"};
  }
  return prefill;
}

}  // namespace

FlashInferDecision flashinfer_kernels(const FlashInferRequest& request) {
  FlashInferDecision decision;
  if (!request.has_kv_cache_manager) {
    without_cache_manager(request, decision);
    return decision;
  }
  KERNELPATH_ASSERT(request.num_kv_heads > 0);
  if (request.multi_item) {
    decision.error = refusal("ValueError", "FI-MULTI-ITEM-PAGED",
                             "multi-item scoring runs without a KV cache manager only");
    return decision;
  }
  decision.prefill = paged_prefill(request);
  if (request.kernel == kDefaultKernel) {
    const bool hopper = request.capability == hardware::Capability{9, 0};
    decision.decode = hopper ? std::string(kDefaultKernel) : "auto";
  } else {
    decision.decode = request.kernel;
  }
  decision.use_tensor_cores = needs_tensor_cores(request);
  decision.q_cast_to_fp8 = request.kernel == kTrtllmGen && request.fp8_kv;
  return decision;
}

void append_steps(const FlashInferDecision& decision, std::vector<Step>& steps) {
  if (decision.error) {
    append_error_step(*decision.error, Stage::kInnerKernel, "FLASHINFER", steps);
    return;
  }
  append_step({.rule = "TRT-FI-PREFILL",
               .stage = Stage::kInnerKernel,
               .verdict = Verdict::kSelected,
               .candidate = decision.prefill->backend,
               .reason = fmt::format("{} prefill wrapper, KV layout {}", decision.prefill->wrapper,
                                     decision.prefill->layout)},
              steps);
  if (decision.prefill->custom_mask_becomes_causal) {
    append_step({.rule = "TRT-FI-CUSTOM-MASK-CAUSAL",
                 .stage = Stage::kInnerKernel,
                 .verdict = Verdict::kApplied,
                 .severity = Severity::kWarn,
                 .candidate = std::string(kTrtllmGen),
                 .reason = "a layer that shares K and V loses its custom mask: it runs causal"},
                steps);
  }
  if (!decision.decode) return;
  const bool tensor_cores = decision.use_tensor_cores.value_or(false);
  append_step({.rule = "TRT-FI-DECODE",
               .stage = Stage::kInnerKernel,
               .verdict = Verdict::kSelected,
               .candidate = *decision.decode,
               .reason = tensor_cores ? "paged decode with tensor cores" : "paged decode"},
              steps);
  if (!decision.q_cast_to_fp8) return;
  append_step({.rule = "TRT-FI-FP8-QUERY",
               .stage = Stage::kInnerKernel,
               .verdict = Verdict::kApplied,
               .candidate = std::string(kTrtllmGen),
               .reason = "the query is cast to FP8 for the FP8 cache; the output stays BF16"},
              steps);
}

FlashInferMlaKernels flashinfer_mla_kernels() { return {}; }

std::int64_t flashinfer_window_left(std::int64_t window) { return window - 1; }

}  // namespace kernelpath::engines::trtllm
