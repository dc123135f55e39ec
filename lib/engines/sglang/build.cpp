#include "engines/sglang/build.h"

#include "engines/sglang/rule_ids.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kernelpath::engines::sglang {
namespace {

struct PlainBackend {
  std::string_view name;
  std::string_view class_name;
};
// Factories that ask for nothing.
constexpr std::array kPlain = {
    PlainBackend{"torch_native", "TorchNativeAttnBackend"},
    PlainBackend{"flex_attention", "TorchFlexAttnBackend"},
    PlainBackend{"flashmla", "FlashMLABackend"},
    PlainBackend{"dsa", "DeepseekSparseAttnBackend"},
    PlainBackend{"nsa", "DeepseekSparseAttnBackend"},
    PlainBackend{"qsa", "QwenSparseAttnBackend"},
    PlainBackend{"aiter", "AiterAttnBackend"},
    PlainBackend{"wave", "WaveAttnBackend"},
    PlainBackend{"ascend", "AscendAttnBackend"},
    PlainBackend{"intel_amx", "IntelAMXAttnBackend"},
    PlainBackend{"intel_xpu", "XPUAttentionBackend"},
    PlainBackend{"minicpm_flashattn", "MiniCPMSparseBackend"},
    PlainBackend{"minicpm_flashinfer", "MiniCPMSparseBackend"},
};

void refuse_build(Launch& launch, std::string_view type, std::string_view rule, std::string text) {
  launch.refuse("build", type, rule, std::move(text));
}

std::string build_fa3(Launch& launch) {
  const int major = launch.platform().major;
  if (major == 9 || (major == 8 && !launch.mla())) return "FlashAttentionBackend";
  refuse_build(launch, "AssertionError", kBuildFa3,
               "FlashAttention v3 Backend requires SM>=80 and SM<=90. Please use "
               "`--attention-backend flashinfer`.");
  return {};
}

std::string build_triton(Launch& launch) {
  if (!launch.model().is_encoder_decoder) return "TritonAttnBackend";
  refuse_build(launch, "AssertionError", kBuildTritonCross,
               "Cross attention is not supported in the triton attention backend. Please use "
               "`--attention-backend flashinfer`.");
  return {};
}

std::string build_hpc_ops(Launch& launch) {
  std::string problem;
  if (launch.mla()) {
    problem = "hpc_ops backend can only be used with non-MLA models.";
  } else if (launch.model().is_encoder_decoder) {
    problem = "Cross attention is not supported in the hpc_ops attention backend.";
  } else if (!launch.unset("speculative_algorithm")) {
    problem = "hpc_ops backend does not support speculative decoding for now.";
  }
  if (problem.empty()) return "HPCOpsAttnBackend";
  refuse_build(launch, "ValueError", kBuildHpcOps, problem);
  return {};
}

std::string needs_mla(Launch& launch, std::string_view backend, std::string class_name) {
  if (launch.mla()) return class_name;
  refuse_build(launch, "ValueError", kBuildNeedsMla,
               fmt::format("{} backend can only be used with MLA models.", backend));
  return {};
}

std::string build_trtllm_mla(Launch& launch, const std::string& kv_dtype) {
  const std::string decode = launch.decode_backend();
  std::string name = needs_mla(launch, "trtllm_mla", "TRTLLMMLABackend");
  if (launch.refused()) return name;
  if (launch.size("dcp_size") > 1 && !launch.unset("speculative_algorithm") &&
      decode == "trtllm_mla") {
    refuse_build(launch, "ValueError", kBuildTrtllmMlaDcp,
                 "trtllm_mla cannot serve decode context parallelism with speculative decoding. "
                 "Select cutedsl_mla.");
    return {};
  }
  const bool cutedsl = decode == "cutedsl_mla" && kv_dtype == "float8_e4m3fn";
  return cutedsl ? "CuteDslMLAPrefillBackend" : name;
}

std::string build_trtllm_mha(Launch& launch) {
  if (!launch.mla()) return "TRTLLMHAAttnBackend";
  refuse_build(launch, "ValueError", kBuildNoMla,
               "trtllm_mha backend can only be used with non-MLA models.");
  return {};
}

std::string build_llada2(Launch& launch) {
  if (!launch.mla()) return "LLaDA2CFGFlashInferAttnBackend";
  refuse_build(launch, "ValueError", kBuildNoMla,
               "LLaDA2 CFG attention does not use an MLA backend");
  return {};
}

std::string dsv4_class(const Launch& launch) {
  if (launch.platform().hip()) return "DeepseekV4HipRadixBackend";
  const std::string kernel = launch.text("dsv4_attn_backend");
  if (kernel == "trtllm") return "DeepseekV4TrtllmAttnBackend";
  return kernel == "flashmla_mega" ? "DeepseekV4MegaAttnBackend" : "DeepseekV4AttnBackend";
}

std::string build_one(Launch& launch, const std::string& backend, const std::string& kv_dtype) {
  if (backend == "flashinfer") {
    return launch.mla() ? "FlashInferMLAAttnBackend" : "FlashInferAttnBackend";
  }
  if (backend == "triton") return build_triton(launch);
  if (backend == "fa3") return build_fa3(launch);
  if (backend == "fa4") {
    const bool diffusion =
        contains(launch.model().architectures, "DiffusionGemmaForBlockDiffusion");
    return diffusion ? "TritonAttnBackend" : "FlashAttentionBackend";
  }
  if (backend == "trtllm_mha") return build_trtllm_mha(launch);
  if (backend == "trtllm_mla") return build_trtllm_mla(launch, kv_dtype);
  if (backend == "cutedsl_mla") return needs_mla(launch, "cutedsl_mla", "CuteDslMLABackend");
  if (backend == "hpc_ops") return build_hpc_ops(launch);
  if (backend == "llada2_cfg_flashinfer") return build_llada2(launch);
  if (backend == "dsv4") return dsv4_class(launch);
  const auto* const found = std::find_if(
      kPlain.begin(), kPlain.end(), [&](const PlainBackend& row) { return row.name == backend; });
  if (found != kPlain.end()) return std::string(found->class_name);
  refuse_build(launch, "ValueError", kBuildUnknown, "Invalid attention backend: " + backend);
  return {};
}

// Layers without attention need a backend of their own.
std::string linear_class(const Launch& launch) {
  switch (launch.model().linear_kind) {
    case LinearKind::kGdn:
      return "GDNAttnBackend";
    case LinearKind::kMamba2:
      return launch.model().short_conv ? "ShortConvAttnBackend" : "Mamba2AttnBackend";
    case LinearKind::kKimi:
    case LinearKind::kGlm5:
      return "KDAAttnBackend";
    case LinearKind::kLightning:
      return "LightningAttentionBackend";
    case LinearKind::kNone:
    case LinearKind::kRegistered:
      break;
  }
  return {};
}

// Names as the engine's set prints them, in a fixed order.
void check_gdn(Launch& launch) {
  if (launch.model().linear_kind != LinearKind::kGdn) return;
  if (launch.mla()) {
    return refuse_build(launch, "AssertionError", kBuildGdn,
                        "hybrid_gdn can only be used with non-MLA models.");
  }
  if (!launch.platform().blackwell()) return;
  Names allowed = {"flashinfer", "triton", "trtllm_mha"};
  if (!launch.platform().sm120()) allowed.insert(allowed.begin(), "fa4");
  const std::string prefill = launch.prefill_backend();
  const std::string decode = launch.decode_backend();
  if (contains(allowed, prefill) && contains(allowed, decode)) return;
  std::string names = python_list(allowed);
  names.front() = '{';
  names.back() = '}';
  refuse_build(
      launch, "AssertionError", kBuildGdn,
      fmt::format("Only {} backends are supported on Blackwell GPUs for hybrid GDN models. "
                  "Got prefill={}, decode={}.",
                  names, prefill, decode));
}

std::string wrap(Launch& launch, const std::string& full, BuiltAttention& built) {
  const ModelFacts& model = launch.model();
  if (model.is_minimax_sparse) {
    if (launch.text("quantization") == "minimax_m3_nvfp4" && launch.platform().blackwell()) {
      return "MiniMaxSparseNvfp4AttnBackend";
    }
    return fmt::format("MiniMaxHybridAttnBackend({},MiniMaxSparseAttnBackend)", full);
  }
  built.linear_class = linear_class(launch);
  if (built.linear_class.empty()) return full;
  check_gdn(launch);
  if (launch.refused()) return {};
  const std::string inner =
      model.linear_kind == LinearKind::kGdn && model.is_qwen_qsa ? "QwenSparseAttnBackend" : full;
  return fmt::format("{}({},{})",
                     model.short_conv ? "ShortConvHybridAttnBackend" : "HybridLinearAttnBackend",
                     inner, built.linear_class);
}

// Backends whose packages are outside the engine's own.
bool needs_foreign_package(const Launch& launch, const std::string& backend) {
  const bool cpu_short_conv = launch.platform().cpu() && launch.model().short_conv;
  return backend == "ascend" || (backend == "aiter" && launch.platform().hip()) || cpu_short_conv;
}

}  // namespace

KvStorage kv_storage(const Launch& launch, bool checkpoint_scales) {
  const std::string kv = launch.text("kv_cache_dtype");
  // CDNA 3 has FP8 with a bias of its own; e5m2 becomes that type, too.
  const bool fnuz = launch.platform().hip() && !launch.platform().gfx95();
  const std::string native = fnuz ? "float8_e4m3fnuz" : "float8_e4m3fn";
  if (kv == "auto") {
    const bool fp8 = checkpoint_scales && launch.model().kv_cache_quant_algo == "FP8";
    return {.torch_dtype = fp8 ? native : launch.model().dtype};
  }
  if (kv == "fp8_e5m2") {
    if (launch.platform().cpu()) {
      return {.refusal = Refusal{.stage = "kv_dtype",
                                 .type = "ValueError",
                                 .rule = std::string(kBuildKvCpu),
                                 .text = "--kv-cache-dtype fp8_e5m2 is not supported on CPU."}};
    }
    return {.torch_dtype = launch.platform().hip() ? native : "float8_e5m2"};
  }
  if (kv == "fp8_e4m3") return {.torch_dtype = native};
  if (kv == "mxfp8") return {.torch_dtype = "float8_e4m3fn"};
  if (kv == "bf16" || kv == "bfloat16") return {.torch_dtype = "bfloat16"};
  return {.torch_dtype = "float4_e2m1fn_x2"};
}

BuiltAttention build_attention(Launch& launch, const std::string& kv_torch_dtype) {
  BuiltAttention built;
  const std::string prefill = launch.prefill_backend();
  const std::string decode = launch.decode_backend();
  if (launch.model().attention_arch == AttentionArch::kSsm) {
    built.class_name = "Mamba2AttnBackend";
    built.linear_class = built.class_name;
    return built;
  }
  // The engine builds the decode side first.
  built.decode_class = build_one(launch, decode, kv_torch_dtype);
  if (launch.refused()) return built;
  built.prefill_class =
      prefill == decode ? built.decode_class : build_one(launch, prefill, kv_torch_dtype);
  if (launch.refused()) return built;
  const std::string full = prefill == decode
                               ? built.decode_class
                               : fmt::format("HybridAttnBackend(prefill={},decode={})",
                                             built.prefill_class, built.decode_class);
  built.class_name = wrap(launch, full, built);
  if (needs_foreign_package(launch, prefill) || needs_foreign_package(launch, decode)) {
    built.class_name.clear();
  }
  return built;
}

}  // namespace kernelpath::engines::sglang
