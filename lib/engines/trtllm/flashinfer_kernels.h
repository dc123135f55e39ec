#pragma once

#include "engines/resolution.h"
#include "hardware/device.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::trtllm {

struct FlashInferRequest {
  bool has_kv_cache_manager = true;
  hardware::Capability capability;
  std::string kernel = "fa2";     // the inner name; "fa2" unless the model sets it
  std::int64_t num_heads = 0;     // per rank
  std::int64_t num_kv_heads = 0;  // per rank, > 0
  std::int64_t head_dim = 0;
  bool cuda_graph = false;
  bool fp8_kv = false;
  bool multi_item = false;  // multi-item scoring
  bool custom_mask = false;
  bool kv_shared = false;    // the layer reads another layer's K and V
  bool context_rows = true;  // the batch has context requests
};

struct FlashInferPrefill {
  std::string wrapper;  // "paged", "ragged", "paged(page_size=1)", "triton-custom-mask"
  std::string backend;  // "fa2", "cudnn", "triton", …
  std::string layout;   // "HND" or "NHD"
  bool custom_mask_becomes_causal = false;
};

struct FlashInferDecision {
  std::optional<FlashInferPrefill> prefill;  // absent on error
  std::optional<std::string> decode;         // absent without a cache manager
  std::optional<bool> use_tensor_cores;      // of the decode wrapper
  bool q_cast_to_fp8 = false;
  std::optional<EngineError> error;
};

// The inner kernels of the FLASHINFER backend. Source: backends/flashinfer.py, 0c005f8d.
FlashInferDecision flashinfer_kernels(const FlashInferRequest& request);
void append_steps(const FlashInferDecision& decision, std::vector<Step>& steps);

// MLA through FlashInfer: ragged prefill for context, paged MLA for cached context and generation.
struct FlashInferMlaKernels {
  std::string_view context = "ragged prefill";
  std::string_view cached_context = "paged MLA";
  std::string_view generation = "paged MLA decode";
};
FlashInferMlaKernels flashinfer_mla_kernels();

// What FlashInfer is given for a sliding window of `window` tokens: the tokens to the left only.
std::int64_t flashinfer_window_left(std::int64_t window);

}  // namespace kernelpath::engines::trtllm
