#include "engines/trtllm/backend_contract.h"

#include "base/text.h"

#include <algorithm>
#include <array>

namespace kernelpath::engines::trtllm {
namespace {

constexpr std::string_view kNoWorkspace = "0";
constexpr std::string_view kTrtllmWorkspace = "own rule for FP8 context MLA, else 0";

// Columns: class, base, fused RoPE, fused QKV, MLA, multi-item scoring, chunked attention, layout,
// workspace, file. Sparse classes repeat what they inherit, so that a reader sees each row whole.
constexpr std::array kCapabilities = {
    BackendCapability{"AttentionBackend", "", false, false, false, false, false, "HND",
                      kNoWorkspace, "interface.py"},
    BackendCapability{"TrtllmAttention", "AttentionBackend", true, true, true, false, true, "HND",
                      kTrtllmWorkspace, "trtllm.py"},
    BackendCapability{"FlashInferAttention", "AttentionBackend", false, false, true, true, false,
                      "HND", kNoWorkspace, "flashinfer.py"},
    BackendCapability{"VanillaAttention", "AttentionBackend", false, false, true, false, false,
                      "NHD", kNoWorkspace, "vanilla.py"},
    BackendCapability{"RocketVanillaAttention", "VanillaAttention", false, false, true, false,
                      false, "NHD", kNoWorkspace, "sparse/rocket.py"},
    BackendCapability{"DSAVanillaAttention", "VanillaAttention", true, false, true, false, false,
                      "NHD", kNoWorkspace, "sparse/dsa"},
    BackendCapability{"RocketTrtllmAttention", "TrtllmAttention", true, true, true, false, true,
                      "HND", kTrtllmWorkspace, "sparse/rocket.py"},
    BackendCapability{"DSATrtllmAttention", "TrtllmAttention", true, true, true, false, true, "HND",
                      kTrtllmWorkspace, "sparse/dsa"},
    BackendCapability{"DeepseekV4TrtllmAttention", "TrtllmAttention", true, true, true, false, true,
                      "HND", kTrtllmWorkspace, "sparse/deepseek_v4"},
    BackendCapability{"QSATrtllmAttention", "TrtllmAttention", true, true, true, false, true, "HND",
                      kTrtllmWorkspace, "sparse/qsa"},
    BackendCapability{"MiniMaxM3MsaSparseAttention", "TrtllmAttention", false, true, true, false,
                      true, "HND", kTrtllmWorkspace, "sparse/minimax_m3"},
    BackendCapability{"GlmKpoolSparseAttention", "TrtllmAttention", false, false, true, false, true,
                      "HND", kTrtllmWorkspace, "sparse/glm_kpool"},
    BackendCapability{"CSA2TrtllmAttention", "TrtllmAttention", true, true, true, false, true,
                      "HND", kTrtllmWorkspace, "sparse/csa2/backend.py"},
    BackendCapability{"CSA2FlashMLAAttention", "CSA2TrtllmAttention", true, true, true, false, true,
                      "HND", kTrtllmWorkspace, "sparse/csa2/backend.py"},
    BackendCapability{"CSA2FlashInferAttention", "CSA2TrtllmAttention", true, true, true, false,
                      true, "HND", kTrtllmWorkspace, "sparse/csa2/backend.py"},
    BackendCapability{"MiniMaxM3SparseRuntimeBackend", "AttentionBackend", false, false, false,
                      false, false, "HND", kNoWorkspace, "sparse/minimax_m3"},
};

constexpr std::array<std::string_view, 41> kForwardArgNames = {
    "output",
    "output_sf",
    "out_scale",
    "out_scale_sf",
    "kv_scale_orig_quant",
    "kv_scale_quant_orig",
    "attention_mask",
    "attention_input_type",
    "attention_window_size",
    "attention_mask_data",
    "attention_sinks",
    "relative_attention_bias",
    "relative_attention_max_distance",
    "cross_kv",
    "latent_cache",
    "q_pe",
    "mrope_rotary_cos_sin",
    "mrope_position_deltas",
    "softmax_stats_tensor",
    "chunked_prefill_buffer_batch_size",
    "cu_q_seqlens",
    "cu_kv_seqlens",
    "fmha_scheduler_counter",
    "skip_mla_rope_generation",
    "mla_bmm1_scale",
    "mla_bmm2_scale",
    "quant_q_buffer",
    "quant_scale_qkv",
    "dsv4_inv_rope_cos_sin_cache",
    "enable_dsv4_epilogue_fusion",
    "kv_norm_weight",
    "kv_norm_eps",
    "sage_attn_num_elts_per_blk_q",
    "sage_attn_num_elts_per_blk_k",
    "sage_attn_num_elts_per_blk_v",
    "sage_attn_qk_int8",
    "is_fused_qkv",
    "update_kv_cache",
    "timestep",
    "sparse_backend_args",
    "sparse_runtime_params",
};

constexpr std::array<std::string_view, 3> kVariantNames = {"default", "stored-2a3c95e3",
                                                           "sparse-strict-fallback"};

}  // namespace

Result<Variant> parse_variant(std::string_view name) {
  if (name.empty() || name == kVariantNames[0]) return Variant::kDefault;
  if (name == kVariantNames[1]) return Variant::kStored2a3c95e3;
  if (name == kVariantNames[2]) return Variant::kSparseStrictFallback;
  return fail(Error{.code = ErrorCode::kUsageUnknown,
                    .message = "unknown variant of TensorRT-LLM's rules; known are default, "
                               "stored-2a3c95e3 and sparse-strict-fallback",
                    .value = std::string(name),
                    .near_matches = near_matches(name, kVariantNames)});
}

std::span<const BackendCapability> backend_capabilities() { return kCapabilities; }

const BackendCapability* find_capability(std::string_view backend_class) {
  const auto* row = std::find_if(
      kCapabilities.begin(), kCapabilities.end(),
      [&](const BackendCapability& entry) { return entry.backend_class == backend_class; });
  return row == kCapabilities.end() ? nullptr : row;
}

bool inherits_from(std::string_view backend_class, std::string_view ancestor) {
  while (!backend_class.empty()) {
    if (backend_class == ancestor) return true;
    const BackendCapability* row = find_capability(backend_class);
    backend_class = row == nullptr ? std::string_view() : row->base_class;
  }
  return false;
}

std::string_view forward_args_name(ForwardArgs result) {
  switch (result) {
    case ForwardArgs::kForwardArgs:
      return "FORWARD-ARGS";
    case ForwardArgs::kFromKwargs:
      return "FROM-KWARGS";
    case ForwardArgs::kBoth:
      return "ERR-BOTH";
    case ForwardArgs::kUnknown:
      return "ERR-UNKNOWN";
  }
  return {};
}

ForwardArgs merge_forward_args(bool forward_args_given, std::span<const std::string> keywords) {
  const bool all_known = std::all_of(keywords.begin(), keywords.end(), [](const auto& keyword) {
    return std::find(kForwardArgNames.begin(), kForwardArgNames.end(), keyword) !=
           kForwardArgNames.end();
  });
  if (!all_known) return ForwardArgs::kUnknown;
  if (!forward_args_given) return ForwardArgs::kFromKwargs;
  return keywords.empty() ? ForwardArgs::kForwardArgs : ForwardArgs::kBoth;
}

bool use_paged_context_fmha(bool chunked_prefill, bool block_reuse, bool has_draft_tokens) {
  return chunked_prefill || block_reuse || has_draft_tokens;
}

bool model_config_fuses_positions(std::string_view attn_backend) {
  return attn_backend == "TRTLLM";
}

}  // namespace kernelpath::engines::trtllm
