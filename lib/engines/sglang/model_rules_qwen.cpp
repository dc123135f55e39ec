#include "engines/sglang/model_rules.h"
#include "engines/sglang/rule_ids.h"
#include "engines/sglang/steps.h"

#include <fmt/format.h>

// Source: arg_groups/model_overrides/{qwen3_5,qwen3_moe,qwen3_vl,qwen4_exp,glm4_moe}.py.
namespace kernelpath::engines::sglang {
namespace {

constexpr std::int64_t kTrtllmPage = 64;
constexpr std::int64_t kLargeGpuMib = std::int64_t{60} * 1024;
constexpr std::int64_t kVisionInterval = 22;

// The checkpoint's method, where the user said nothing about quantisation.
std::string adopt_quantization(Launch& launch, Declaration& fields) {
  std::string quantization = launch.text("quantization");
  const std::string& stated = launch.model().quant_method;
  if (quantization.empty() && !launch.quantization_opted_out() && !stated.empty()) {
    fields.emplace_back("quantization", text_value(stated));
    quantization = stated;
  }
  return quantization;
}

void w4a16_runner(Launch& launch, Declaration& fields) {
  const std::string runner = launch.text("moe_runner_backend");
  const std::string a2a = launch.text("moe_a2a_backend");
  const bool cutedsl = runner == "flashinfer_cutedsl" && (a2a == "none" || a2a == "flashinfer") &&
                       launch.variable("SGLANG_FLASHINFER_CUTEDSL_NVFP4_W4A16");
  if (runner != "auto" && runner != "marlin" && !cutedsl) {
    return launch.value_error(
        kMoeW4a16,
        "W4A16_NVFP4 MoE layers require --moe-runner-backend=marlin, or flashinfer_cutedsl with "
        "--moe-a2a-backend=none/flashinfer and SGLANG_FLASHINFER_CUTEDSL_NVFP4_W4A16=1.");
  }
  if (runner != "auto") return;
  fields.emplace_back("moe_runner_backend", text_value("marlin"));
  launch.info(kMoeW4a16,
              fmt::format("Use marlin as MoE runner backend for {} with W4A16_NVFP4 MoE layers",
                          launch.model().architecture()));
}

bool large_hopper_vision(const Launch& launch) {
  const std::string& type = launch.model().model_type;
  return launch.platform().sm90() && launch.input().gpu_memory_mib.value_or(0) >= kLargeGpuMib &&
         launch.model().is_multimodal && (type == "qwen3_vl" || type == "qwen3_vl_moe");
}

}  // namespace

std::string hybrid_sm100_backend(const Launch& launch) {
  if (default_attention_backend(launch) != "trtllm_mha") return "triton";
  const bool states_in_pages = !launch.extra_buffer() && !launch.flag("disable_radix_cache") &&
                               launch.unset("speculative_algorithm");
  return states_in_pages ? "triton" : "trtllm_mha";
}

Declaration qwen3_5_hybrid_rule(Launch& launch) {
  if (!launch.platform().sm100() || !launch.unset("attention_backend")) return {};
  const std::string backend = hybrid_sm100_backend(launch);
  return {{"attention_backend", text_value(backend)},
          {"page_size", integer_value(backend == "trtllm_mha" ? kTrtllmPage : 1)}};
}

Declaration qwen3_moe_family_rule(Launch& launch) {
  Declaration fields;
  if (!launch.platform().sm100()) return fields;
  const std::string quantization = adopt_quantization(launch, fields);
  if (quantization == "modelopt_mixed" && launch.model().w4a16_experts) {
    w4a16_runner(launch, fields);
    return fields;
  }
  const bool served = quantization.empty() || quantization == "fp8" ||
                      quantization == "modelopt_fp4" || quantization == "modelopt_mixed";
  if (served && launch.text("moe_a2a_backend") == "none" &&
      launch.text("moe_runner_backend") == "auto") {
    fields.emplace_back("moe_runner_backend", text_value("flashinfer_trtllm"));
    launch.info(kModelQwenMoe,
                fmt::format("Use flashinfer_trtllm as MoE runner backend on sm100 for {}",
                            launch.model().architecture()));
  }
  return fields;
}

Declaration glm4_moe_rule(Launch& launch) {
  Declaration fields;
  if (launch.platform().sm100()) {
    const std::string quantization = adopt_quantization(launch, fields);
    const bool served = quantization.empty() || quantization == "modelopt_fp4";
    if (served && launch.text("moe_a2a_backend") == "none" &&
        launch.text("moe_runner_backend") == "auto") {
      fields.emplace_back("moe_runner_backend", text_value("flashinfer_trtllm"));
      launch.info(kModelGlm4Moe,
                  "Use flashinfer_trtllm as MoE runner backend on sm100 for Glm4MoeForCausalLM");
    }
  }
  launch.info(kModelGlm4Moe,
              "Enable TF32 matmul for Glm4MoeForCausalLM model to improve gate gemm performance.");
  fields.emplace_back("enable_tf32_matmul", boolean_value(true));
  return fields;
}

Declaration qwen3_vl_rule(Launch& launch) {
  if (launch.platform().hip() && launch.variable("SGLANG_USE_AITER_UNIFIED_ATTN") &&
      launch.unset("page_size")) {
    constexpr std::int64_t kUnifiedPage = 16;
    launch.info(kModelQwenVl,
                "Setting page_size=16 for aiter unified attention on "
                "Qwen3VLForConditionalGeneration.");
    return {{"page_size", integer_value(kUnifiedPage)}};
  }
  return {};
}

Declaration qwen3_vl_hopper_rule(Launch& launch) {
  if (!large_hopper_vision(launch)) return {};
  Declaration fields;
  const bool no_cache = launch.integer("mm_preprocess_cache_size_mb").value_or(0) <= 0;
  if (launch.unset("mm_preprocess_cache_size_mb")) {
    fields.emplace_back("mm_preprocess_cache_size_mb", integer_value(0));
  }
  if (launch.unset("mm_feature_transport") && launch.size("nnodes") == 1 && no_cache) {
    fields.emplace_back("mm_feature_transport", text_value("cuda_ipc"));
  }
  if (launch.text("radix_eviction_policy") == "lru" &&
      launch.arguments().given("radix_eviction_policy") == nullptr) {
    fields.emplace_back("radix_eviction_policy", text_value("priority"));
  }
  if (launch.unset("prefill_decode_interval")) {
    fields.emplace_back("prefill_decode_interval", integer_value(kVisionInterval));
  }
  if (launch.unset("attention_backend") && launch.unset("decode_attention_backend")) {
    fields.emplace_back("decode_attention_backend", text_value("flashinfer"));
  }
  if (!fields.empty()) {
    launch.info(kModelQwenVlHopper,
                fmt::format("Applying profiled {} serving defaults on a large Hopper GPU",
                            launch.model().model_type));
  }
  return fields;
}

Declaration qwen4_exp_rule(Launch& launch) {
  Declaration fields;
  if (launch.flag("enable_unified_memory")) {
    launch.value_error(kModelQwen4, "Qwen4-Exp does not support --enable-unified-memory yet");
    return fields;
  }
  if (launch.unset("ple_offload_embedding")) {
    fields.emplace_back("ple_offload_embedding", boolean_value(launch.platform().cuda() &&
                                                               launch.model().dtype == "bfloat16"));
  }
  if (launch.platform().sm100() && launch.unset("attention_backend")) {
    const std::string backend = hybrid_sm100_backend(launch);
    fields.emplace_back("attention_backend", text_value(backend));
    fields.emplace_back("page_size", integer_value(backend == "trtllm_mha" ? kTrtllmPage : 1));
  }
  if (launch.model().is_qwen_qsa) {
    fields.emplace_back("page_size", integer_value(kTrtllmPage));
    launch.info(kModelQwen4,
                "Setting page size to 64 for compressed QSA (full//ratio compressed addressing).");
  }
  return fields;
}

}  // namespace kernelpath::engines::sglang
