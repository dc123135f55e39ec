#include "engines/sglang/model_rules.h"
#include "engines/sglang/rule_ids.h"

#include <fmt/format.h>

// Source: arg_groups/model_overrides/{gpt_oss,llama4,gemma2_gemma3,gemma4,embedding_gemma2,exaone,
// olmo2,moss_vl,muse_glimmer,beam,iquest_q1,ernie45_vl,cohere2_moe}.py, overrides.py.
namespace kernelpath::engines::sglang {
namespace {

// FlashAttention 3 where the capability alone suggests it: SM110 and SM120 count, too, though the
// backend refuses them when it is built.
std::string capability_backend(const Platform& platform) {
  constexpr int kFlashAttention3 = 80;
  if (platform.sm100()) return "trtllm_mha";
  return platform.cuda() && platform.device_sm() >= kFlashAttention3 ? "fa3" : "triton";
}

std::string gpt_oss_backend(const Platform& platform) {
  if (platform.sm100()) return "trtllm_mha";
  if (platform.sm90()) return "fa3";
  if (platform.cpu() && platform.has_amx) return "intel_amx";
  return platform.hip() ? "aiter" : "triton";
}

void gpt_oss_runner(Launch& launch, Declaration& fields) {
  const Platform& platform = launch.platform();
  const bool mxfp4 = launch.model().quant_method == "mxfp4";
  if (launch.text("moe_runner_backend") != "auto") return;
  if (platform.sm100() && mxfp4) {
    fields.emplace_back("moe_runner_backend", text_value("flashinfer_mxfp4"));
    launch.warn(kModelGptOss,
                "Detected SM100 and MXFP4 quantization format for GPT-OSS model, enabling "
                "FlashInfer MXFP4 MOE kernel.");
  } else if (platform.sm120() && mxfp4) {
    fields.emplace_back("moe_runner_backend", text_value("flashinfer_mxfp4"));
    launch.warn(kModelGptOss,
                "Detected SM120 and MXFP4 quantization format for GPT-OSS model, enabling "
                "FlashInfer CUTLASS MXFP4 MOE kernel.");
  } else if (platform.hip() && launch.variable("SGLANG_USE_AITER")) {
    fields.emplace_back("moe_runner_backend", text_value(mxfp4 ? "auto" : "triton"));
    launch.warn(kModelGptOss, mxfp4 ? "Detected ROCm and MXFP4 quantization format for GPT-OSS "
                                      "model, enabling aiter MXFP4 MOE kernel."
                                    : "Detected ROCm with SGLANG_USE_AITER for GPT-OSS bf16 model, "
                                      "using triton MOE kernel.");
  }
}

}  // namespace

Declaration gpt_oss_rule(Launch& launch) {
  Declaration fields;
  if (launch.no_backend_set()) {
    fields.emplace_back("attention_backend", text_value(gpt_oss_backend(launch.platform())));
  }
  if (launch.model().quant_method == "mxfp4") {
    fields.emplace_back("dtype", text_value("bfloat16"));
  }
  gpt_oss_runner(launch, fields);
  return fields;
}

Declaration llama4_rule(Launch& launch) {
  Declaration fields;
  if (launch.device_is("cpu")) return fields;
  const Platform& platform = launch.platform();
  if (launch.unset("attention_backend")) {
    const auto [backend, where] = platform.sm100()  ? std::pair("trtllm_mha", "sm100")
                                  : platform.sm90() ? std::pair("fa3", "sm90")
                                  : platform.hip()  ? std::pair("aiter", "hip")
                                                    : std::pair("triton", "other platforms");
    launch.warn(kModelLlama4,
                fmt::format("Use {} as attention backend on {} for Llama4 model", backend, where));
    fields.emplace_back("attention_backend", text_value(backend));
  }
  const std::string quantization = launch.text("quantization");
  const bool fp8 = quantization == "fp8" || quantization == "modelopt_fp8";
  if (platform.sm100() && launch.text("moe_runner_backend") == "auto" && fp8) {
    fields.emplace_back("moe_runner_backend", text_value("flashinfer_trtllm"));
    launch.info(kModelLlama4, "Use flashinfer_trtllm as MoE runner backend on SM100 for Llama4");
  }
  return fields;
}

Declaration gemma2_gemma3_rule(Launch& launch) {
  launch.warn(kModelGemma2Gemma3,
              fmt::format("Disable hybrid SWA memory for {} as it is not yet supported.",
                          launch.model().architecture()));
  return {{"disable_hybrid_swa_memory", boolean_value(true)}};
}

Declaration gemma4_rule(Launch& launch) {
  Declaration fields;
  const bool diffusion = launch.model().is("DiffusionGemmaForBlockDiffusion");
  const char* backend = !diffusion && launch.platform().sm100() ? "trtllm_mha" : "triton";
  if (launch.no_backend_set()) {
    launch.info(kModelGemma4,
                fmt::format("Use {} as default attention backend for Gemma4", backend));
  }
  if (launch.unset("attention_backend")) {
    fields.emplace_back("attention_backend", text_value(backend));
  }
  if (launch.platform().sm100() && launch.text("moe_runner_backend") == "auto" &&
      launch.model().quantization == "modelopt_fp4") {
    fields.emplace_back("quantization", text_value("modelopt_fp4"));
    fields.emplace_back("moe_runner_backend", text_value("flashinfer_trtllm"));
    launch.info(kModelGemma4,
                "Use flashinfer_trtllm as MoE runner backend on SM100 for Gemma-4 (modelopt_fp4)");
  }
  return fields;
}

Declaration embedding_gemma2_rule(Launch& launch) {
  Declaration fields = {{"disable_radix_cache", boolean_value(true)}};
  if (launch.unset("attention_backend")) {
    launch.info(kModelEmbeddingGemma2,
                "Use triton as default attention backend for EmbeddingGemma2Model");
    fields.emplace_back("attention_backend", text_value("triton"));
  }
  return fields;
}

Declaration exaone_rule(Launch& launch) {
  Declaration fields;
  if (!launch.model().has_sliding_window_pattern) return fields;
  launch.warn(kModelExaone,
              fmt::format("Disabling hybrid SWA memory for {} as it is not yet supported.",
                          launch.model().architecture()));
  fields.emplace_back("disable_hybrid_swa_memory", boolean_value(true));
  if (launch.unset("attention_backend")) {
    fields.emplace_back("attention_backend", text_value(capability_backend(launch.platform())));
  }
  return fields;
}

Declaration olmo2_rule(Launch& launch) {
  launch.warn(kModelOlmo2,
              fmt::format("Disabling hybrid SWA memory for {} as it is not yet supported.",
                          launch.model().architecture()));
  Declaration fields = {{"disable_hybrid_swa_memory", boolean_value(true)}};
  if (launch.unset("attention_backend")) {
    fields.emplace_back("attention_backend", text_value(capability_backend(launch.platform())));
  }
  return fields;
}

Declaration beam_rule(Launch& launch) {
  Declaration fields;
  const Platform& platform = launch.platform();
  if (launch.no_backend_set() && (platform.sm90() || platform.sm100() || platform.sm120())) {
    launch.info(kModelBeam, "Use trtllm_mha as default attention backend for Beam");
    fields.emplace_back("attention_backend", text_value("trtllm_mha"));
  }
  std::string quantization = launch.text("quantization");
  if (quantization.empty()) quantization = launch.model().quant_method;
  if (quantization == "modelopt") quantization = launch.model().quant_algo;
  const bool fp4 = quantization == "modelopt_fp4" || quantization == "NVFP4";
  if (fp4 && platform.sm100() && launch.text("moe_runner_backend") == "auto" &&
      launch.text("moe_a2a_backend") == "none") {
    launch.info(kModelBeam, "Use flashinfer_trtllm as MoE runner backend for quantized Beam");
    fields.emplace_back("moe_runner_backend", text_value("flashinfer_trtllm"));
  }
  return fields;
}

namespace {

std::string iquest_problem(const Launch& launch) {
  for (const std::string_view field :
       {"attention_backend", "prefill_attention_backend", "decode_attention_backend"}) {
    const std::string backend = launch.text(field);
    if (!backend.empty() && backend != "fa3") {
      return "IQuestQ1 applies its attention sink from the softmax LSE and requires FA3 attention "
             "for both prefill and decode.";
    }
  }
  if (launch.size("attn_cp_size") > 1 || launch.size("dcp_size") > 1 ||
      launch.flag("enable_prefill_cp")) {
    return "IQuestQ1 does not support context parallelism.";
  }
  if (launch.integer("speculative_eagle_topk").value_or(1) > 1) {
    return "IQuestQ1 speculative decoding requires --speculative-eagle-topk 1.";
  }
  if (launch.flag("enable_multi_layer_eagle")) {
    return "IQuest Q1 MTP drafting does not support multi-layer EAGLE.";
  }
  if (launch.attention_dp()) return "IQuest Q1 does not support DP attention.";
  if (launch.size("pp_size") > 1) return "IQuest Q1 does not support pipeline parallelism.";
  return {};
}

}  // namespace

Declaration iquest_q1_rule(Launch& launch) {
  const std::string problem = iquest_problem(launch);
  if (!problem.empty()) {
    launch.value_error(kModelIquestQ1, problem);
    return {};
  }
  if (launch.no_backend_set()) return {{"attention_backend", text_value("fa3")}};
  Declaration fields;
  if (!launch.unset("attention_backend")) return fields;
  for (const std::string_view field : {"prefill_attention_backend", "decode_attention_backend"}) {
    if (launch.unset(field)) fields.emplace_back(std::string(field), text_value("fa3"));
  }
  return fields;
}

Declaration moss_vl_rule(Launch& launch) {
  Declaration fields;
  std::string prefill = launch.prefill_backend();
  if (launch.no_backend_set()) {
    prefill = "flashinfer";
    fields.emplace_back("prefill_attention_backend", text_value(prefill));
    launch.info(kModelMossVl, "Use flashinfer as default prefill attention backend for Moss-VL");
  }
  if (prefill != "flashinfer") {
    launch.assertion_error(kModelMossVl,
                           "MossVLForConditionalGeneration requires flashinfer prefill attention "
                           "backend for cross-attention custom mask support.");
  }
  return fields;
}

Declaration muse_glimmer_rule(Launch& launch) {
  if (!launch.platform().sm120() || launch.text("fp4_gemm_runner_backend") != "auto") return {};
  launch.info(kModelMuseGlimmer, "Use marlin as FP4 GEMM runner backend on SM120 for Muse Glimmer");
  return {{"fp4_gemm_runner_backend", text_value("marlin")}};
}

Declaration muse_spark_rule(Launch& launch) {
  Declaration fields;
  if (launch.unset("enable_tf32_matmul")) {
    fields.emplace_back("enable_tf32_matmul", boolean_value(true));
    launch.info(kModelMuseSpark, "Enable TF32 matmul by default for Muse Spark");
  }
  if (launch.text("kv_cache_dtype") == "auto") {
    launch.info(kModelMuseSpark, "Use fp8_e4m3 KV cache by default for Muse Spark");
    fields.emplace_back("kv_cache_dtype", text_value("fp8_e4m3"));
  }
  if (launch.unset("mm_enable_dp_encoder") && launch.attention_dp()) {
    launch.info(kModelMuseSpark,
                "Enable the data-parallel mm encoder for Muse Spark under attention DP");
    fields.emplace_back("mm_enable_dp_encoder", boolean_value(true));
  }
  return fields;
}

Declaration ernie45_vl_rule(Launch& launch) {
  if (launch.attention_dp()) {
    launch.value_error(kModelErnie45Vl,
                       "ERNIE 4.5 VL MoE does not support DP attention: its attention heads are "
                       "split over the full TP group.");
  }
  return {};
}

Declaration cohere2_moe_rule(Launch& launch) {
  if (launch.text("moe_runner_backend") != "auto" || !launch.platform().sm100()) return {};
  if (!launch.model().quantization.empty() && !launch.model().nvfp4_pack_quantized) return {};
  launch.info(kModelCohere2Moe,
              "Command-A-Plus on SM10X: moe_runner_backend=flashinfer_trtllm (trtllm-gen fused "
              "MoE).");
  return {{"moe_runner_backend", text_value("flashinfer_trtllm")}};
}

}  // namespace kernelpath::engines::sglang
