#include "base/text.h"
#include "engines/sglang/model_rules.h"
#include "engines/sglang/rule_ids.h"

#include <fmt/format.h>

#include <algorithm>

// Source: arg_groups/model_overrides/{falcon_h1,granitemoehybrid,lfm2,minicpm,minicpmv,inkling,
// nemotron_h,kimi_k3,bailing_moe_v3,gigachat35,interns2_mobius}.py.
namespace kernelpath::engines::sglang {
namespace {

Declaration sm100_default(const Launch& launch, std::string_view backend) {
  if (!launch.platform().sm100() || !launch.unset("attention_backend")) return {};
  return {{"attention_backend", text_value(backend)}};
}

bool one_of(const std::string& text, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), text) != names.end();
}

// --- Nemotron-H ----------------------------------------------------------------------------------

std::string nemotron_quantization(const ModelFacts& model) {
  if (model.quantization != "modelopt") return model.quantization;
  if (model.quant_algo == "MIXED_PRECISION") return "modelopt_mixed";
  return model.quant_algo == "NVFP4" ? "modelopt_fp4" : "modelopt_fp8";
}

void nemotron_w4a16(Launch& launch, Declaration& fields) {
  const std::string runner = launch.text("moe_runner_backend");
  if (launch.text("moe_a2a_backend") != "none") {
    return launch.value_error(kMoeW4a16, "W4A16_NVFP4 MoE layers require --moe-a2a-backend=none.");
  }
  if (runner != "auto" && runner != "marlin") {
    return launch.value_error(kMoeW4a16,
                              "W4A16_NVFP4 MoE layers require --moe-runner-backend=marlin.");
  }
  if (runner == "auto") fields.emplace_back("moe_runner_backend", text_value("marlin"));
}

void nemotron_runner(Launch& launch, const std::string& quantization, bool modelopt,
                     Declaration& fields) {
  const ModelFacts& model = launch.model();
  const Platform& platform = launch.platform();
  const bool remaps = launch.flag("enable_eplb") ||
                      launch.integer("ep_num_redundant_experts").value_or(0) > 0 ||
                      launch.text("init_expert_location") != "trivial";
  const bool automatic = launch.text("moe_runner_backend") == "auto";
  const bool no_a2a = launch.text("moe_a2a_backend") == "none";
  if (quantization == "modelopt_mixed" && model.w4a16_experts) {
    return nemotron_w4a16(launch, fields);
  }
  if (!automatic || (!remaps && !modelopt && !model.quantization.empty())) return;
  if (remaps && platform.sm100() && no_a2a) {
    fields.emplace_back("moe_runner_backend", text_value("flashinfer_trtllm_routed"));
    return;
  }
  if (!modelopt && !model.quantization.empty()) return;
  if (platform.sm100() && no_a2a) {
    fields.emplace_back("moe_runner_backend", text_value("flashinfer_trtllm"));
    launch.info(kModelNemotronH,
                fmt::format("Use flashinfer_trtllm as MoE runner backend on sm100 for {}",
                            model.architecture()));
    return;
  }
  const bool fp4 = one_of(model.quantization, {"modelopt_fp4", "modelopt_mixed"}) ||
                   quantization == "modelopt_fp4";
  if (fp4 && platform.cuda() && platform.at_least(8, 0) && !platform.at_least(10, 0)) {
    fields.emplace_back("moe_runner_backend", text_value("marlin"));
    launch.info(kModelNemotronH,
                fmt::format("Use marlin as MoE runner backend on SM80-SM90 for {} {}",
                            model.architecture(), model.quantization));
    return;
  }
  fields.emplace_back("moe_runner_backend", text_value("flashinfer_cutlass"));
}

void nemotron_speculation(const Launch& launch, Declaration& fields) {
  constexpr std::int64_t kPage = 64;
  const std::string algorithm = to_upper(launch.text("speculative_algorithm"));
  const bool no_draft_backend = launch.unset("speculative_draft_attention_backend");
  if (launch.platform().sm100() && launch.integer("speculative_eagle_topk").value_or(1) == 1) {
    fields.emplace_back("attention_backend", text_value("trtllm_mha"));
    if (launch.unset("page_size")) fields.emplace_back("page_size", integer_value(kPage));
    if (launch.text("mamba_radix_cache_strategy") == "auto") {
      fields.emplace_back("mamba_radix_cache_strategy", text_value("extra_buffer"));
    }
    if (no_draft_backend && one_of(algorithm, {"EAGLE", "NEXTN", "DSPARK"})) {
      fields.emplace_back("speculative_draft_attention_backend", text_value("trtllm_mha"));
    }
    return;
  }
  fields.emplace_back("attention_backend", text_value("triton"));
  if (no_draft_backend && one_of(algorithm, {"EAGLE", "NEXTN", "DFLASH", "DSPARK"})) {
    fields.emplace_back("speculative_draft_attention_backend", text_value("flashinfer"));
  }
}

// --- Kimi K3 -------------------------------------------------------------------------------------

std::string kimi_k3_decode_under_dcp(Launch& launch, Declaration& fields) {
  const std::string prefill = launch.prefill_backend();
  std::string decode = launch.decode_backend();
  if (decode.empty() || decode == "cutedsl_mla") {
    launch.info(kModelKimiK3, "Kimi-K3 DCP keeps decode attention backend 'cutedsl_mla'.");
    fields.emplace_back("prefill_attention_backend", text_value("trtllm_mla"));
    fields.emplace_back("decode_attention_backend", text_value("cutedsl_mla"));
  } else if (decode == "aiter") {
    fields.emplace_back("prefill_attention_backend",
                        text_value(prefill == "triton" ? "triton" : "aiter"));
    fields.emplace_back("decode_attention_backend", text_value("aiter"));
  } else {
    launch.assertion_error(kModelKimiK3,
                           fmt::format("Decode attention backend for Kimi-K3 DCP must be "
                                       "'cutedsl_mla' or 'aiter', got '{}'.",
                                       decode));
  }
  return decode;
}

Declaration kimi_k3_dcp(Launch& launch) {
  Declaration fields;
  if (launch.flag("enable_symm_mem")) {
    launch.warn(kModelKimiK3,
                "Kimi-K3 DCP disables --enable-symm-mem due to decode CUDA graph correctness "
                "issues.");
    fields.emplace_back("enable_symm_mem", boolean_value(false));
  }
  if (launch.text("speculative_algorithm") == "DSPARK") {
    fields.emplace_back("speculative_attention_mode", text_value("decode"));
  }
  kimi_k3_decode_under_dcp(launch, fields);
  const std::string backend = launch.text("dcp_comm_backend");
  if (launch.unset("dcp_replicate_q_proj") && one_of(backend, {"a2a", "fi_a2a"})) {
    launch.info(kModelKimiK3, "Kimi-K3 DCP enables replicated Q projection by default.");
    fields.emplace_back("dcp_replicate_q_proj", boolean_value(true));
  }
  return fields;
}

}  // namespace

Declaration falcon_h1_jet_rule(Launch& launch) { return sm100_default(launch, "triton"); }

Declaration minicpm_v4_6_rule(Launch& launch) { return sm100_default(launch, "triton"); }

Declaration lfm2_rule(Launch& launch) { return sm100_default(launch, "flashinfer"); }

Declaration granite_moe_hybrid_rule(Launch& launch) {
  if (launch.model().linear_kind != LinearKind::kMamba2) return {};
  return sm100_default(launch, "flashinfer");
}

Declaration nemotron_h_rule(Launch& launch) {
  Declaration fields;
  const ModelFacts& model = launch.model();
  const bool modelopt =
      one_of(model.quantization, {"modelopt", "modelopt_fp8", "modelopt_fp4", "modelopt_mixed"});
  std::string quantization = launch.text("quantization");
  if (modelopt) {
    quantization = nemotron_quantization(model);
    fields.emplace_back("quantization", text_value(quantization));
  }
  nemotron_runner(launch, quantization, modelopt, fields);
  if (!launch.platform().blackwell() || !launch.no_backend_set()) return fields;
  if (!launch.unset("speculative_algorithm")) {
    nemotron_speculation(launch, fields);
  } else if (launch.platform().sm100()) {
    fields.emplace_back("attention_backend", text_value("trtllm_mha"));
  }
  return fields;
}

Declaration inkling_rule(Launch& launch) {
  Declaration fields;
  if (launch.unset("swa_full_tokens_ratio")) {
    fields.emplace_back("swa_full_tokens_ratio", json::Value::number(0.1));
  }
  if (launch.unset("mamba_full_memory_ratio")) {
    fields.emplace_back("mamba_full_memory_ratio", json::Value::number(0.1));
  }
  if (launch.text("mamba_radix_cache_strategy") == "auto") {
    fields.emplace_back("mamba_radix_cache_strategy", text_value("extra_buffer"));
  }
  if (!launch.flag("disable_radix_cache")) {
    fields.emplace_back("uses_mamba_radix_cache", boolean_value(true));
  }
  if (launch.no_backend_set()) {
    const bool fa4 = launch.platform().sm90() || launch.platform().sm100();
    const char* backend = fa4 ? "fa4" : "triton";
    fields.emplace_back("attention_backend", text_value(backend));
    launch.info(kModelInkling, fmt::format("Use {} as the attention backend for Inkling (requires "
                                           "fa4 or triton).",
                                           backend));
  }
  return fields;
}

Declaration minicpm_sala_rule(Launch& launch) {
  const ModelFacts& model = launch.model();
  Declaration fields;
  if (launch.attention_dp()) {
    launch.value_error(kModelMinicpm, "MiniCPM does not support DP attention");
    return fields;
  }
  if (model.has_minicpm_sparse || model.has_minicpm_lightning) {
    if (launch.flag("enable_hierarchical_cache")) {
      launch.value_error(kModelMinicpm, "MiniCPM SALA does not support hierarchical cache");
      return fields;
    }
    fields.emplace_back("disable_radix_cache", boolean_value(true));
  }
  if (!model.has_minicpm_sparse) return fields;
  const auto sparse = [&](std::string_view field) {
    return one_of(launch.text(field), {"minicpm_flashattn", "minicpm_flashinfer"});
  };
  const bool used = launch.no_backend_set() || sparse("attention_backend") ||
                    sparse("prefill_attention_backend") || sparse("decode_attention_backend");
  if (used && launch.text("disaggregation_mode") != "null") {
    launch.value_error(kModelMinicpm,
                       "MiniCPM sparse attention does not support PD disaggregation");
  } else if (launch.no_backend_set()) {
    fields.emplace_back(
        "attention_backend",
        text_value(launch.platform().blackwell() ? "minicpm_flashinfer" : "minicpm_flashattn"));
  }
  return fields;
}

Declaration kimi_k3_rule(Launch& launch) {
  if (launch.size("dcp_size") > 1) return kimi_k3_dcp(launch);
  const int sm = launch.platform().device_sm();
  if (!launch.platform().sm100() || (sm != 100 && sm != 103)) return {};
  const bool unset = launch.no_backend_set();
  Declaration fields;
  if (unset) {
    fields.emplace_back("decode_attention_backend", text_value("trtllm_mla"));
    fields.emplace_back("prefill_attention_backend", text_value("trtllm_mla"));
  }
  if (launch.text("speculative_algorithm") != "DSPARK") {
    if (unset) {
      launch.info(kModelKimiK3,
                  "Use trtllm_mla as the default prefill and decode attention backend for Kimi-K3 "
                  "on SM100/SM103.");
    }
    return fields;
  }
  const std::string decode = unset ? "trtllm_mla" : launch.decode_backend();
  if (one_of(decode, {"trtllm_mla", "cutedsl_mla"})) {
    fields.emplace_back("speculative_attention_mode", text_value("decode"));
    launch.info(kModelKimiK3, fmt::format("Kimi-K3 DSPARK on SM100/SM103: decode/verify attention "
                                          "backend {} (speculative_attention_mode=decode).",
                                          decode));
  } else {
    launch.warn(kModelKimiK3, fmt::format("Kimi-K3 DSPARK: decode attention backend '{}' cannot "
                                          "serve target verify, so verify runs on the prefill "
                                          "backend.",
                                          decode));
  }
  return fields;
}

Declaration kimi_k3_moe_rule(Launch& launch) {
  const int sm = launch.platform().device_sm();
  const bool device = launch.platform().sm100() && (sm == 100 || sm == 103 || sm == 107);
  if (launch.text("moe_runner_backend") != "auto" || !device) return {};
  if (!launch.model().mxfp4_pack_quantized) return {};
  launch.info(kModelKimiK3Moe,
              "Kimi-K3 on SM100/SM103/SM107: moe_runner_backend=flashinfer_mxfp4 (FlashInfer SiTU "
              "kernels).");
  return {{"moe_runner_backend", text_value("flashinfer_mxfp4")}};
}

Declaration bailing_moe_v3_rule(Launch& launch) {
  const Platform& platform = launch.platform();
  const bool kernels = platform.sm90() || platform.sm100() || platform.sm120();
  if (launch.text("moe_runner_backend") != "auto" || !kernels ||
      launch.text("moe_a2a_backend") != "none") {
    return {};
  }
  if (launch.model().quantization != "fp8" || !launch.model().is_fp4_experts) return {};
  launch.info(kModelBailingV3, fmt::format("Bailing V3 mixed FP8/MXFP4 checkpoint: "
                                           "moe_runner_backend=flashinfer_mxfp4 for {}.",
                                           launch.model().architecture()));
  return {{"moe_runner_backend", text_value("flashinfer_mxfp4")}};
}

Declaration gigachat35_rule(Launch& launch) {
  Declaration fields = {{"disable_shared_experts_fusion", boolean_value(true)}};
  if (launch.text("speculative_algorithm") == "EAGLE") {
    launch.info(kModelGigachat35,
                "Enable multi-layer EAGLE speculative decoding for GigaChat 3.5 model.");
    fields.emplace_back("enable_multi_layer_eagle", boolean_value(true));
  }
  return fields;
}

Declaration interns2_mobius_rule(Launch& launch) {
  if (launch.text("moe_runner_backend") != "auto") return {};
  return {{"moe_runner_backend", text_value("triton_kernel")}};
}

}  // namespace kernelpath::engines::sglang
