#include "engines/sglang/model_rules.h"
#include "engines/sglang/rule_ids.h"
#include "engines/sglang/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

// Source: arg_groups/model_hook.py (handle_model_specific_adjustments).
namespace kernelpath::engines::sglang {
namespace {

bool is_one_of(const std::string& name, std::span<const std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void reset_for_determinism(Launch& launch) {
  if (launch.flag("enable_deterministic_inference")) {
    launch.declare(kDeterministicAllReduce, "enforce_disable_flashinfer_allreduce_fusion",
                   boolean_value(true));
  }
  launch.declare(kMambaRadixCache, "uses_mamba_radix_cache", boolean_value(false));
}

void check_mobius(Launch& launch) {
  if (!launch.model().is("InternS2MobiusForConditionalGeneration")) return;
  if (launch.size("pp_size") == 1 && launch.size("ep_size") == 1) return;
  launch.value_error(kModelMobius,
                     "Intern-S2-Mobius does not support pipeline parallelism (--pp-size must be 1) "
                     "or expert parallelism (--ep-size must be 1).");
}

// The linear-attention defaults of Kimi and GLM-5-Next.
void kimi_defaults(Launch& launch) {
  const bool kimi = launch.model().is("KimiLinearForCausalLM") ||
                    launch.model().is("KimiK3ForConditionalGeneration");
  if (!kimi) return;
  if (launch.unset("linear_attn_decode_backend") && launch.text("mamba_ssm_dtype") == "bfloat16" &&
      launch.platform().sm100()) {
    launch.declare(kKimiLinear, "linear_attn_decode_backend", text_value("triton"));
    launch.info(kKimiLinear,
                "Kimi hybrid model with bf16 SSM state: defaulting --linear-attn-decode-backend to "
                "triton.");
  }
  if (launch.unset("speculative_algorithm")) return;
  if (launch.unset("linear_attn_verify_backend")) {
    launch.declare(kKimiLinear, "linear_attn_verify_backend", text_value("nv_cutedsl"));
    launch.info(kKimiLinear,
                "Kimi hybrid model with speculative decoding: pinning --linear-attn-verify-backend "
                "to nv_cutedsl (uses the fused Kimi-K3/DSPARK CuTeDSL kernel).");
  }
  if (launch.text("speculative_algorithm") == "DSPARK" && launch.platform().sm100() &&
      launch.unset("speculative_draft_attention_backend")) {
    launch.declare(kKimiLinear, "speculative_draft_attention_backend", text_value("trtllm_mha"));
    launch.info(kKimiLinear,
                "Kimi hybrid DSPARK: defaulting --speculative-draft-attention-backend to "
                "trtllm_mha.");
  }
}

void glm5_next_defaults(Launch& launch) {
  if (!launch.model().is("Glm5NextForConditionalGeneration") || !launch.platform().sm100()) return;
  if (launch.unset("speculative_algorithm") || !launch.unset("linear_attn_verify_backend")) return;
  launch.declare(kKimiLinear, "linear_attn_verify_backend", text_value("nv_cutedsl"));
  launch.info(kKimiLinear,
              "GLM-5-Next with speculative decoding: defaulting --linear-attn-verify-backend to "
              "nv_cutedsl.");
}

// --- DeepSeek's family ---------------------------------------------------------------------------

void dsa_graph_and_groups(Launch& launch) {
  if (launch.flag("enable_prefill_cp")) {
    launch.set_graph(kDsaCp, GraphPhase::kPrefill, "disabled");
    return;
  }
  const std::int64_t groups = launch.size("attn_cp_size") * launch.size("attn_dp_size");
  const std::int64_t attention_tp = launch.size("tp_size") / std::max<std::int64_t>(1, groups);
  if (attention_tp <= 1) return;
  launch.warn(
      kDsaTp,
      fmt::format("DSA with TP mode is active, attn_dp_size={}, tp_size={}, "
                  "attn_tp_size={}, attention weights will be sharded across {} ranks.",
                  launch.size("attn_dp_size"), launch.size("tp_size"), attention_tp, attention_tp));
}

void check_index_sharing(Launch& launch) {
  if (!launch.flag("enable_two_batch_overlap") || !launch.model().shares_topk_indices) return;
  launch.value_error(kDsaTwoBatch,
                     "--enable-two-batch-overlap is not supported with DSA index-topk sharing: the "
                     "TBO op path does not propagate topk indices across layers, so shared layers "
                     "would run sparse attention without indices.");
}

void dsa_adjustments(Launch& launch) {
  launch.warn(
      kDsaDenseThreshold,
      fmt::format("Set dense attention kv len threshold to model index_topk={} for DeepSeek "
                  "with DSA.",
                  launch.model().index_topk.value_or(0)));
  check_index_sharing(launch);
  if (launch.refused()) return;
  dsa_graph_and_groups(launch);
  dsa_kv_cache_dtype(launch);
  if (!launch.refused()) dsa_split_backends(launch);
  if (launch.refused() || !launch.flag("enable_prefill_cp")) return;
  if (launch.text("disaggregation_mode") == "decode") {
    launch.assertion_error(kDsaCp,
                           "CP is only supported for prefill when PD disaggregation, please remove "
                           "--enable-prefill-cp.");
  }
}

void family_adjustments(Launch& launch) {
  if (launch.model().is_dsa) {
    dsa_adjustments(launch);
  } else {
    if (launch.graph().prefill != "disabled") {
      launch.info(kMlaPiecewise, "Piecewise CUDA graph is enabled, use MLA for prefill.");
    }
    if (launch.flag("enable_prefill_cp") && launch.mla()) {
      launch.set_graph(kMlaCp, GraphPhase::kPrefill, "disabled");
    }
  }
  if (launch.refused()) return;
  deepseek_moe_quantization(launch);
  if (!launch.platform().hip() || launch.attention_dp() || launch.size("nnodes") != 1) return;
  if (!launch.model().is("GlmMoeDsaForCausalLM")) return;
  launch.declare(kAiterFusion, "enable_aiter_allreduce_fusion", boolean_value(true));
  launch.declare(kAiterFusion, "disable_aiter_allreduce_fusion_in_prefill", boolean_value(true));
  launch.info(kAiterFusion,
              "Enable Aiter AllReduce Fusion on decode phase for GlmMoeDsaForCausalLM");
}

// --- what an architecture accepts ----------------------------------------------------------------

void check_gpt_oss(Launch& launch) {
  const std::vector<std::string> accepted = {"triton", "trtllm_mha", "fa3",       "fa4",
                                             "ascend", "intel_amx",  "intel_xpu", "aiter"};
  if (contains(accepted, launch.prefill_backend()) && contains(accepted, launch.decode_backend())) {
    return;
  }
  launch.assertion_error(
      kAcceptGptOss,
      fmt::format("GptOssForCausalLM requires one of {} attention backend, but got the following "
                  "backends\n- Prefill: {}\n- Decode: {}\n",
                  python_list(accepted), launch.prefill_backend(), launch.decode_backend()));
}

void check_llama4(Launch& launch) {
  constexpr std::array<std::string_view, 6> kAccepted = {"fa3",    "aiter",      "triton",
                                                         "ascend", "trtllm_mha", "intel_xpu"};
  const std::string backend = launch.text("attention_backend");
  if (launch.device_is("cpu") || is_one_of(backend, kAccepted)) return;
  launch.assertion_error(kAcceptLlama4,
                         fmt::format("fa3, aiter, triton, ascend, trtllm_mha or intel_xpu is "
                                     "required for Llama4 model but got {}",
                                     backend.empty() ? "None" : backend));
}

void check_gemma4(Launch& launch) {
  constexpr std::array<std::string_view, 7> kAccepted = {
      "trtllm_mha", "triton", "fa4", "ascend", "intel_xpu", "intel_amx", "aiter"};
  if (is_one_of(launch.prefill_backend(), kAccepted) &&
      is_one_of(launch.decode_backend(), kAccepted)) {
    return;
  }
  launch.assertion_error(
      kAcceptGemma4,
      fmt::format("Gemma4 only supports trtllm_mha, triton, fa4, ascend, intel_xpu, intel_amx, or "
                  "aiter attention backend, got prefill={}, decode={}",
                  launch.prefill_backend(), launch.decode_backend()));
}

void check_exaone(Launch& launch) {
  if (!launch.model().has_sliding_window_pattern) return;
  const std::vector<std::string> accepted = {"fa3", "triton", "trtllm_mha"};
  const std::string backend = launch.text("attention_backend");
  if (contains(accepted, backend)) return;
  launch.assertion_error(
      kAcceptExaone,
      fmt::format("One of the attention backends in {} is required for {}, but got {}",
                  python_list(accepted), launch.model().architecture(), backend));
}

void check_olmo2(Launch& launch) {
  const std::string backend = launch.text("attention_backend");
  if (backend == "flashinfer") {
    return launch.assertion_error(kAcceptOlmo2,
                                  "FlashInfer backend can significantly degrade the performance of "
                                  "Olmo3 models.");
  }
  launch.info(kAcceptOlmo2, fmt::format("Using {} as attention backend for {}.", backend,
                                        launch.model().architecture()));
}

void check_lfm2(Launch& launch) {
  if (launch.text("attention_backend") != "triton") return;
  launch.assertion_error(kAcceptLfm2,
                         fmt::format("{} does not support triton attention backend, as the first "
                                     "layer might not be an attention layer",
                                     launch.model().architecture()));
}

struct Acceptance {
  std::string_view architecture;
  void (*check)(Launch&);
};
constexpr std::array kAcceptances = {
    Acceptance{"DeepseekV3ForCausalLM", family_adjustments},
    Acceptance{"DeepseekV32ForCausalLM", family_adjustments},
    Acceptance{"KimiK25ForConditionalGeneration", family_adjustments},
    Acceptance{"MistralLarge3ForCausalLM", family_adjustments},
    Acceptance{"PixtralForConditionalGeneration", family_adjustments},
    Acceptance{"GlmMoeDsaForCausalLM", family_adjustments},
    Acceptance{"Glm5NextForConditionalGeneration", family_adjustments},
    Acceptance{"HYV4ForCausalLM", family_adjustments},
    Acceptance{"HYV4ForCausalLMNextN", family_adjustments},
    Acceptance{"LongcatFlashForCausalLM", family_adjustments},
    Acceptance{"Dots3NoteForCausalLM", family_adjustments},
    Acceptance{"GptOssForCausalLM", check_gpt_oss},
    Acceptance{"Llama4ForConditionalGeneration", check_llama4},
    Acceptance{"Llama4ForCausalLM", check_llama4},
    Acceptance{"Gemma4ForConditionalGeneration", check_gemma4},
    Acceptance{"Gemma4ForCausalLM", check_gemma4},
    Acceptance{"Gemma4UnifiedForConditionalGeneration", check_gemma4},
    Acceptance{"Exaone4ForCausalLM", check_exaone},
    Acceptance{"ExaoneMoEForCausalLM", check_exaone},
    Acceptance{"ExaoneMoeForCausalLM", check_exaone},
    Acceptance{"Olmo2ForCausalLM", check_olmo2},
    Acceptance{"Lfm2ForCausalLM", check_lfm2},
    Acceptance{"Lfm2MoeForCausalLM", check_lfm2},
};

void check_architecture(Launch& launch) {
  const auto* const found =
      std::find_if(kAcceptances.begin(), kAcceptances.end(),
                   [&](const Acceptance& row) { return launch.model().is(row.architecture); });
  if (found != kAcceptances.end()) found->check(launch);
}

// --- all-reduce fusion ---------------------------------------------------------------------------

bool mimo_fusion(const Launch& launch) {
  return launch.platform().sm100() && launch.model().dtype == "bfloat16" &&
         launch.size("attn_cp_size") == 1 && !launch.flag("encoder_only") &&
         !launch.flag("enable_pdmux");
}

void allreduce_fusion(Launch& launch) {
  const ModelFacts& model = launch.model();
  const Platform& platform = launch.platform();
  const bool mimo = model.is("MiMoV2ForCausalLM") || model.is("MiMoV2FlashForCausalLM");
  const std::int64_t tp = launch.size("tp_size");
  const bool mimo_size = tp == 2 || tp == 4 || tp == 8;
  if (mimo && (!mimo_fusion(launch) || !mimo_size)) return;
  if (!mimo && !launch.profile().in_group("allreduce_fusion", model.architecture())) return;
  const bool device = platform.sm90() || platform.sm100();
  const bool nodes = launch.size("nnodes") == 1 || platform.sm100();
  if (!launch.unset("flashinfer_allreduce_fusion_backend") || !device || tp <= 1 ||
      launch.attention_dp() || !nodes || launch.text("moe_a2a_backend") != "none") {
    return;
  }
  const char* backend = mimo ? "cutedsl" : "auto";
  launch.info(kAllReduceFusion, fmt::format("Auto-enabling FlashInfer AllReduce Fusion ({}) for {}",
                                            backend, model.architecture()));
  launch.declare(kAllReduceFusion, "flashinfer_allreduce_fusion_backend", text_value(backend));
}

void enforce_no_fusion(Launch& launch) {
  if (!launch.flag("enforce_disable_flashinfer_allreduce_fusion")) return;
  launch.info(kAllReduceFusionOff,
              "FlashInfer allreduce fusion is forcibly disabled via "
              "--enforce-disable-flashinfer-allreduce-fusion.");
  launch.declare(kAllReduceFusionOff, "flashinfer_allreduce_fusion_backend", json::Value::null());
}

}  // namespace

void model_specific_adjustments(Launch& launch) {
  reset_for_determinism(launch);
  constexpr std::array kSteps = {check_mobius,       apply_model_rules,    kimi_defaults,
                                 glm5_next_defaults, deepseek_v4_defaults, check_architecture,
                                 mamba_radix_cache,  allreduce_fusion,     enforce_no_fusion};
  for (const auto& step : kSteps) {
    step(launch);
    if (launch.refused()) return;
  }
}

}  // namespace kernelpath::engines::sglang
