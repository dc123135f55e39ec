#include "engines/sglang/model_rules.h"
#include "engines/sglang/rule_ids.h"

#include <fmt/format.h>

// Source: arg_groups/model_overrides/{mimo_v2,minimax_m2,minimax_m3}.py, overrides.py (Step 3.5).
namespace kernelpath::engines::sglang {
namespace {

constexpr std::int64_t kM3Page = 128;

// A checkpoint whose experts are NVFP4 beside MXFP8 is served by a stack of its own.
std::string m3_method(Launch& launch) {
  const ModelFacts& model = launch.model();
  if (model.quant_method != "mxfp8" || !model.minimax_nvfp4) return model.quant_method;
  launch.info(kModelMinimaxM3,
              "Checkpoint declares mxfp8 with NVFP4 packed experts; serving as minimax_m3_nvfp4.");
  return "minimax_m3_nvfp4";
}

void m3_nvfp4_blackwell(Launch& launch, Declaration& fields) {
  const std::string a2a = launch.text("moe_a2a_backend");
  const std::string runner = launch.text("moe_runner_backend");
  if (a2a != "none" && a2a != "megamoe") {
    return launch.value_error(kModelMinimaxM3,
                              runner == "flashinfer_trtllm_routed"
                                  ? "M3.1 NVFP4 flashinfer_trtllm_routed requires "
                                    "--moe-a2a-backend none or megamoe"
                                  : "M3.1 NVFP4 requires --moe-a2a-backend megamoe");
  }
  if (runner != "flashinfer_trtllm_routed") {
    fields.emplace_back("moe_a2a_backend", text_value("megamoe"));
    if (runner == "auto") fields.emplace_back("moe_runner_backend", text_value("deep_gemm"));
  }
  fields.emplace_back("page_size", integer_value(kM3Page));
  const std::string kv = launch.text("kv_cache_dtype");
  if (kv == "auto") {
    fields.emplace_back("kv_cache_dtype", text_value("fp8_e4m3"));
  } else if (kv != "fp8_e4m3") {
    return launch.value_error(kModelMinimaxM3, "M3.1 NVFP4 requires --kv-cache-dtype fp8_e4m3");
  }
  if (launch.no_backend_set()) {
    fields.emplace_back("attention_backend", text_value("trtllm_mha"));
  }
}

void m3_nvfp4(Launch& launch, Declaration& fields) {
  const std::string algorithm = launch.text("speculative_algorithm");
  if (!algorithm.empty() && algorithm != "DSPARK" && algorithm != "DFLASH") {
    return launch.value_error(kModelMinimaxM3,
                              "M3.1 NVFP4 only supports DSPARK or DFLASH speculation");
  }
  const auto page = launch.integer("page_size");
  if (page && *page != kM3Page) {
    return launch.value_error(kModelMinimaxM3, "M3.1 NVFP4 requires --page-size 128");
  }
  if (launch.platform().blackwell()) return m3_nvfp4_blackwell(launch, fields);
  fields.emplace_back("page_size", integer_value(kM3Page));
  if (launch.text("moe_runner_backend") == "auto") {
    fields.emplace_back("moe_runner_backend", text_value("marlin"));
  }
  if (launch.no_backend_set()) fields.emplace_back("attention_backend", text_value("fa3"));
}

void m3_rocm(Launch& launch, const std::string& quantization, Declaration& fields) {
  if (launch.no_backend_set()) fields.emplace_back("attention_backend", text_value("triton"));
  if (launch.text("moe_runner_backend") == "auto" && quantization == "mxfp8") {
    fields.emplace_back("moe_runner_backend", text_value("triton"));
  }
  bool fused = launch.flag("enable_aiter_allreduce_fusion");
  if (fused && launch.size("ep_size") > 1 && launch.text("moe_a2a_backend") == "none") {
    fields.emplace_back("enable_aiter_allreduce_fusion", boolean_value(false));
    fused = false;
  }
  if (!fused && !launch.variable("SGLANG_M3_ALLOW_CUSTOM_AR")) {
    fields.emplace_back("disable_custom_all_reduce", boolean_value(true));
  }
}

std::string declared_text(const Launch& launch, const Declaration& fields, std::string_view name) {
  for (const auto& [field, value] : fields) {
    if (field == name) return value.is_string() ? value.as_string() : std::string();
  }
  return launch.text(name);
}

std::optional<std::int64_t> m3_page(const Launch& launch, bool wanted, Declaration& fields) {
  const auto page = launch.integer("page_size");
  if (page || !wanted) return page;
  fields.emplace_back("page_size", integer_value(kM3Page));
  return kM3Page;
}

void m3_sm100(Launch& launch, const std::string& quantization, Declaration& fields) {
  if (launch.no_backend_set()) {
    const bool fp8 = launch.text("kv_cache_dtype") == "fp8_e4m3" &&
                     !launch.variable("SGLANG_DISABLE_M3_FP8_ATTN_GEMM");
    fields.emplace_back("attention_backend", text_value(fp8 ? "trtllm_mha" : "fa4"));
  }
  const std::string backend = declared_text(launch, fields, "attention_backend");
  const auto page = m3_page(launch, backend == "fa4" || backend == "trtllm_mha", fields);
  if (launch.text("moe_runner_backend") == "auto") {
    if (quantization == "mxfp8") {
      fields.emplace_back("moe_runner_backend", text_value("deep_gemm"));
    } else if (quantization == "modelopt_mixed") {
      fields.emplace_back("moe_runner_backend", text_value("flashinfer_trtllm_routed"));
    }
  }
  launch.info(kModelMinimaxM3,
              fmt::format("MiniMax-M3 on SM100: attention_backend={}, page_size={}, "
                          "moe_runner_backend={}.",
                          backend.empty() ? "None" : backend, python_none(page),
                          declared_text(launch, fields, "moe_runner_backend")));
}

void m3_hopper(Launch& launch, Declaration& fields) {
  if (launch.no_backend_set()) fields.emplace_back("attention_backend", text_value("fa3"));
  const std::string backend = declared_text(launch, fields, "attention_backend");
  const auto page = m3_page(launch, backend == "fa3", fields);
  launch.info(kModelMinimaxM3,
              fmt::format("MiniMax-M3 on Hopper: attention_backend={}, page_size={} (MSA is "
                          "SM100-only; sparse attention runs on the Triton path).",
                          backend.empty() ? "None" : backend, python_none(page)));
}

void m3_kv_messages(Launch& launch, const Declaration& fields) {
  const std::string kv = launch.text("kv_cache_dtype");
  if (kv == "fp8_e5m2") {
    launch.warn(
        kModelMinimaxM3,
        "MiniMax-M3 with kv_cache_dtype fp8_e5m2: fp8 attention GEMMs stay DISABLED; sparse "
        "attention runs on the widening Triton path. Use --kv-cache-dtype fp8_e4m3 for fp8 "
        "attention GEMMs.");
  } else if (kv == "fp8_e4m3" && launch.platform().sm100() &&
             declared_text(launch, fields, "attention_backend") == "trtllm_mha") {
    launch.info(kModelMinimaxM3,
                launch.variable("SGLANG_DISABLE_M3_FP8_ATTN_GEMM")
                    ? "MiniMax-M3 fp8 attention GEMMs DISABLED by SGLANG_DISABLE_M3_FP8_ATTN_GEMM."
                    : "MiniMax-M3 fp8 attention GEMMs active (kv_cache_dtype fp8_e4m3 + trtllm_mha "
                      "on SM100).");
  }
}

}  // namespace

Declaration minimax_m3_rule(Launch& launch) {
  Declaration fields;
  const std::string method = m3_method(launch);
  std::string quantization = launch.text("quantization");
  if (quantization.empty() && !launch.quantization_opted_out() && !method.empty()) {
    fields.emplace_back("quantization", text_value(method));
    quantization = method;
  }
  if (quantization == "minimax_m3_nvfp4") {
    m3_nvfp4(launch, fields);
    return fields;
  }
  if (launch.platform().hip()) {
    m3_rocm(launch, quantization, fields);
  } else if (launch.platform().sm100()) {
    m3_sm100(launch, quantization, fields);
  } else if (launch.platform().sm90()) {
    m3_hopper(launch, fields);
  }
  m3_kv_messages(launch, fields);
  const std::string runner = declared_text(launch, fields, "moe_runner_backend");
  if (quantization.empty() && (runner == "auto" || runner == "deep_gemm")) {
    if (runner == "deep_gemm") {
      launch.warn(kModelMinimaxM3,
                  "MiniMax-M3: the deep_gemm MoE runner produces corrupted output on bf16 full "
                  "weights; overriding --moe-runner-backend to 'triton'.");
    }
    fields.emplace_back("moe_runner_backend", text_value("triton"));
  }
  return fields;
}

Declaration minimax_m2_rule(Launch& launch) {
  Declaration fields = {{"enable_tf32_matmul", boolean_value(true)}};
  launch.info(kModelMinimaxM2,
              "Enable TF32 matmul for MiniMaxM2ForCausalLM model to improve gate gemm "
              "performance.");
  if (launch.platform().sm100() && launch.text("moe_runner_backend") == "auto" &&
      launch.model().quantization == "modelopt_fp4") {
    fields.emplace_back("moe_runner_backend", text_value("flashinfer_trtllm_routed"));
    launch.info(kModelMinimaxM2,
                "Use flashinfer_trtllm_routed as MoE runner backend on SM10X for "
                "MiniMaxM2ForCausalLM with modelopt_fp4.");
  }
  return fields;
}

Declaration mimo_v2_rule(Launch& launch) {
  Declaration fields;
  const ModelFacts& model = launch.model();
  const Platform& platform = launch.platform();
  if (launch.text("speculative_algorithm") == "EAGLE") {
    launch.info(kModelMimoV2, "Enable multi-layer EAGLE speculative decoding for MiMoV2 model.");
    fields.emplace_back("enable_multi_layer_eagle", boolean_value(true));
  }
  if (platform.sm100() && launch.no_backend_set()) {
    fields.emplace_back("attention_backend", text_value("fa4"));
    launch.info(kModelMimoV2, "MiMoV2 on SM100: attention_backend=fa4.");
  }
  if (launch.text("moe_runner_backend") != "auto" || model.quant_method != "fp8") return fields;
  if (platform.sm100()) {
    if (launch.text("moe_a2a_backend") != "none") return fields;
    const char* runner = model.is_fp4_experts ? "flashinfer_mxfp4" : "flashinfer_trtllm";
    fields.emplace_back("moe_runner_backend", text_value(runner));
    launch.info(kModelMimoV2, fmt::format("MiMoV2 on SM100: moe_runner_backend={}.", runner));
  } else if (platform.sm90() && model.is_fp4_experts) {
    fields.emplace_back("moe_runner_backend", text_value("marlin"));
    launch.info(kModelMimoV2, "MiMoV2 on SM90: moe_runner_backend=marlin.");
  }
  return fields;
}

Declaration step3p_rule(Launch& launch) {
  Declaration fields;
  if (launch.no_backend_set()) {
    if (launch.platform().blackwell()) {
      launch.info(kModelStep3p, "Auto-select fa4 attention backend for Step3p7 on Blackwell.");
      fields.emplace_back("attention_backend", text_value("fa4"));
    } else if (launch.platform().sm90()) {
      launch.info(kModelStep3p, "Auto-select fa3 attention backend for Step3p7 on Hopper.");
      fields.emplace_back("attention_backend", text_value("fa3"));
    }
  }
  if (launch.text("speculative_algorithm") == "EAGLE") {
    launch.info(kModelStep3p,
                "Enable multi-layer EAGLE speculative decoding for Step3p5ForCausalLM model.");
    fields.emplace_back("enable_multi_layer_eagle", boolean_value(true));
  }
  if (launch.flag("enable_hierarchical_cache")) {
    launch.warn(kModelStep3p,
                "Reset swa_full_tokens_ratio to 1.0 for Step3p5ForCausalLM model with hierarchical "
                "cache");
    fields.emplace_back("swa_full_tokens_ratio", json::Value::number(1.0));
    launch.warn(kModelStep3p,
                "Disable hybrid SWA memory for Step3p5ForCausalLM model with hierarchical cache");
    fields.emplace_back("disable_hybrid_swa_memory", boolean_value(true));
  }
  return fields;
}

}  // namespace kernelpath::engines::sglang
