#include "engines/sglang/rule_ids.h"
#include "engines/sglang/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

// Source: arg_groups/overrides.py (DSA passes), arg_groups/{deepseek_v4,hisparse}_hook.py.
namespace kernelpath::engines::sglang {
namespace {

constexpr std::string_view kFp8 = "fp8_e4m3";
constexpr std::string_view kBf16 = "bfloat16";

bool in_family(const Launch& launch) {
  return launch.profile().in_group("deepseek_family", launch.model().architecture()) &&
         launch.model().is_dsa;
}

// Kernels of prefill and decode that fit together; refuses those that do not.
void check_pair(Launch& launch, const std::string& prefill, const std::string& decode) {
  const bool hip = launch.platform().hip();
  if (!hip && (prefill == "triton" || decode == "triton")) {
    return launch.value_error(
        kDsaTriton,
        "The triton DSA backend is only supported on ROCm/HIP. Pick an alternative DSA backend for "
        "CUDA (flashmla_kv on Hopper, trtllm on Blackwell).");
  }
  const bool tilelang = prefill == "tilelang" || decode == "tilelang";
  if (hip || launch.text("kv_cache_dtype") != kFp8 || !tilelang) return;
  if (prefill != decode) {
    return launch.value_error(kDsaTilelang,
                              "CUDA TileLang FP8 KV requires both DSA backends to be tilelang; raw "
                              "and scaled FP8 KV layouts cannot be mixed.");
  }
  if (launch.size("dcp_size") > 1) {
    return launch.value_error(kDsaTilelang,
                              "CUDA TileLang FP8 KV does not support --dcp-size > 1.");
  }
  if (!launch.platform().at_least(8, 9)) {
    launch.value_error(kDsaTilelang, "CUDA TileLang FP8 KV requires SM89 or newer.");
  }
}

struct SparsePair {
  std::string prefill;
  std::string decode;
};

// Defaults of both phases; an explicit value always stays.
SparsePair sparse_defaults(const Launch& launch) {
  const bool fp8 = launch.text("kv_cache_dtype") == kFp8;
  const bool blackwell = launch.platform().major >= 10;
  if (launch.platform().hip()) return {.prefill = "triton", .decode = "triton"};
  if (fp8) {
    const char* both = blackwell ? "trtllm" : "flashmla_kv";
    return {.prefill = both, .decode = both};
  }
  return {.prefill = "flashmla_sparse", .decode = blackwell ? "trtllm" : "fa3"};
}

std::string hisparse_backend(const Launch& launch) {
  if (launch.platform().hip()) return "tilelang";
  return launch.text("kv_cache_dtype") == kFp8 ? "flashmla_kv" : "flashmla_sparse";
}

// Declares what the user left open and returns the pair that results.
SparsePair fill_missing(Launch& launch, const SparsePair& defaults) {
  Declaration fields;
  SparsePair pair{.prefill = launch.text("dsa_prefill_backend"),
                  .decode = launch.text("dsa_decode_backend")};
  if (pair.prefill.empty()) {
    pair.prefill = defaults.prefill;
    fields.emplace_back("dsa_prefill_backend", text_value(pair.prefill));
  }
  if (pair.decode.empty()) {
    pair.decode = defaults.decode;
    fields.emplace_back("dsa_decode_backend", text_value(pair.decode));
  }
  check_pair(launch, pair.prefill, pair.decode);
  if (!launch.refused()) launch.declare(kDsaKernels, std::move(fields));
  return pair;
}

void sinks_backends(Launch& launch) {
  const std::string only = "flashmla_sparse";
  Declaration fields;
  for (const std::string_view field : {"dsa_prefill_backend", "dsa_decode_backend"}) {
    const std::string value = launch.text(field);
    if (!value.empty() && value != only) {
      std::string option(field);
      std::replace(option.begin(), option.end(), '_', '-');
      return launch.value_error(
          kDsaSinks, fmt::format("{} uses learnable attention sinks and requires --{} '{}'; got "
                                 "'{}'",
                                 launch.model().architecture(), option, only, value));
    }
    if (value.empty()) fields.emplace_back(std::string(field), text_value(only));
  }
  launch.warn(kDsaSinks,
              "Set DSA backends for learnable attention sinks: prefill=flashmla_sparse, "
              "decode=flashmla_sparse.");
  launch.declare(kDsaKernels, std::move(fields));
}

void glm_sm12_backends(Launch& launch) {
  const std::string backend = "flashinfer_sparse_mla";
  launch.warn(kDsaKernels, fmt::format("Set DSA backends for GLM FP8 KV Cache on SM120/SM121: "
                                       "prefill={0}, decode={0}.",
                                       backend));
  Declaration fields;
  for (const std::string_view field : {"dsa_prefill_backend", "dsa_decode_backend"}) {
    if (launch.unset(field)) fields.emplace_back(std::string(field), text_value(backend));
  }
  launch.declare(kDsaKernels, std::move(fields));
}

void hisparse_backends(Launch& launch) {
  const std::string backend = hisparse_backend(launch);
  const std::string kv = launch.text("kv_cache_dtype");
  const std::string given_prefill = launch.text("dsa_prefill_backend");
  const std::string given_decode = launch.text("dsa_decode_backend");
  if (!launch.platform().hip() && kv == kFp8 &&
      (given_prefill == "tilelang" || given_decode == "tilelang")) {
    return launch.value_error(kDsaTilelang, "CUDA TileLang FP8 KV does not support HiSparse.");
  }
  const SparsePair pair = fill_missing(launch, {.prefill = backend, .decode = backend});
  launch.warn(kDsaKernels, fmt::format("HiSparse enabled ({}): using DSA backends prefill={}, "
                                       "decode={}.",
                                       kv, pair.prefill, pair.decode));
}

}  // namespace

void dsa_kv_cache_dtype(Launch& launch) {
  if (!in_family(launch)) return;
  const std::string before = launch.text("kv_cache_dtype");
  const bool chosen = !launch.unset("dsa_prefill_backend") || !launch.unset("dsa_decode_backend");
  if (chosen && before == "auto") {
    launch.warn(kDsaKvDtype,
                "When specifying --dsa-prefill-backend or --dsa-decode-backend, you should also "
                "explicitly set --kv-cache-dtype (e.g., 'fp8_e4m3' or 'bfloat16'). DeepSeek V3.2 "
                "defaults to FP8 KV cache which may not be compatible with all backends.");
  }
  const bool sinks = launch.model().learnable_sink;
  if (sinks && before != "auto" && before != "bf16" && before != kBf16) {
    return launch.value_error(kDsaSinks,
                              fmt::format("Learnable DSA attention sinks require a bfloat16 KV "
                                          "cache; got kv_cache_dtype={}.",
                                          before));
  }
  std::string dtype = before;
  const int major = launch.platform().major;
  if (dtype == "auto") {
    dtype = std::string(major >= 10 && !sinks ? kFp8 : kBf16);
    launch.warn(kDsaKvDtype, fmt::format("Setting KV cache dtype to {} for DeepSeek DSA on SM{} "
                                         "device.",
                                         dtype, major));
  }
  if (dtype == "bf16") dtype = std::string(kBf16);
  if (dtype != kBf16 && dtype != kFp8) {
    return launch.assertion_error(
        kDsaKvDtype, "DeepSeek DSA only supports bf16/bfloat16 or fp8_e4m3 kv_cache_dtype");
  }
  if (dtype != before) launch.declare(kDsaKvDtype, "kv_cache_dtype", text_value(dtype));
}

void dsa_split_backends(Launch& launch) {
  if (!in_family(launch)) return;
  if (launch.model().learnable_sink) return sinks_backends(launch);
  const std::string kv = launch.text("kv_cache_dtype");
  const bool glm_sm12 = launch.model().is("GlmMoeDsaForCausalLM") &&
                        launch.platform().major == 12 && kv == kFp8 && !launch.platform().hip();
  if (glm_sm12) return glm_sm12_backends(launch);
  if (launch.flag("enable_hisparse")) return hisparse_backends(launch);
  const SparsePair pair = fill_missing(launch, sparse_defaults(launch));
  if (launch.refused()) return;
  launch.warn(kDsaKernels, fmt::format("Set DSA backends for {} KV Cache: prefill={}, decode={}.",
                                       kv, pair.prefill, pair.decode));
}

namespace {

bool trtllm_moe_serves(const ModelFacts& model, const std::string& quantization) {
  constexpr std::array<std::string_view, 5> kServed = {"", "fp8", "modelopt_fp8", "modelopt_fp4",
                                                       "modelopt_mixed"};
  return model.is_int4_group32 ||
         std::find(kServed.begin(), kServed.end(), quantization) != kServed.end();
}

// The checkpoint's own quantisation, where the user said nothing.
std::string adopt(Launch& launch, Declaration& fields) {
  const ModelFacts& model = launch.model();
  std::string quantization = launch.text("quantization");
  if (!quantization.empty() || launch.quantization_opted_out()) return quantization;
  if (model.quant_method.empty() && model.is("DeepseekV3ForCausalLM")) {
    const bool fp8 = launch.input().fp8_experts_in_checkpoint;
    launch.info(kDeepseekFp8Experts,
                fp8 ? "Detected FP8 expert weights in checkpoint, default to fp8 for DeepSeek on "
                      "sm100"
                    : "No FP8 expert weights found in checkpoint, keeping bf16 for DeepSeek-arch "
                      "model on sm100");
    if (fp8) {
      quantization = "fp8";
      fields.emplace_back("quantization", text_value(quantization));
    }
    return quantization;
  }
  fields.emplace_back("quantization", text_value(model.quant_method));
  return model.quant_method;
}

}  // namespace

void deepseek_moe_quantization(Launch& launch) {
  const ModelFacts& model = launch.model();
  if (!launch.profile().in_group("deepseek_family", model.architecture())) return;
  if (!launch.platform().sm100()) return;
  Declaration fields;
  const std::string quantization = adopt(launch, fields);
  const bool longcat = model.architecture().starts_with("LongcatFlash");
  if (launch.text("moe_a2a_backend") == "none" && launch.text("moe_runner_backend") == "auto" &&
      !longcat && trtllm_moe_serves(model, quantization)) {
    fields.emplace_back("moe_runner_backend", text_value("flashinfer_trtllm"));
    launch.info(kDeepseekMoe,
                model.is_int4_group32
                    ? "Use flashinfer_trtllm as MoE runner backend on Blackwell for Kimi K2 / K2.5 "
                      "thinking int4"
                    : "Use flashinfer_trtllm as MoE runner backend on sm100 for "
                      "DeepseekV3ForCausalLM");
  }
  launch.declare(kDeepseekMoe, std::move(fields));
}

namespace {

void v4_kv_dtype(Launch& launch) {
  const std::string before = launch.text("kv_cache_dtype");
  std::string dtype = before;
  const std::string& name = launch.model().architecture();
  if (dtype == "auto") {
    dtype = std::string(kFp8);
    launch.warn(kV4KvDtype, fmt::format("Setting KV cache dtype to {} for {}.", dtype, name));
  }
  if (dtype != kFp8 && dtype != kBf16) {
    return launch.assertion_error(kV4KvDtype,
                                  fmt::format("{} is not supported for {}", dtype, name));
  }
  if (dtype != before) launch.declare(kV4KvDtype, "kv_cache_dtype", text_value(dtype));
}

std::string v4_kernel(const Launch& launch) {
  const std::int64_t groups = launch.size("attn_cp_size") * launch.size("attn_dp_size");
  const bool sharded = !launch.flag("enable_prefill_cp") &&
                       launch.size("tp_size") / std::max<std::int64_t>(1, groups) > 1;
  const bool mega = launch.model().model_type == "deepseek_v41" && launch.platform().sm100() &&
                    launch.text("kv_cache_dtype") == kFp8 &&
                    (launch.text("disaggregation_mode") != "null" || !sharded);
  return mega ? "flashmla_mega" : "flashmla";
}

void check_v4_kernel(Launch& launch) {
  const std::string kernel = launch.text("dsv4_attn_backend");
  const bool sm100 = launch.platform().sm100();
  if (kernel == "flashmla_mega" && !(launch.model().model_type == "deepseek_v41" && sm100)) {
    return launch.assertion_error(
        kV4Kernel, "--dsv4-attn-backend flashmla_mega requires DeepSeek-V4.1 on SM100/SM103.");
  }
  if (kernel != "trtllm") return;
  std::string problem;
  const std::string kv = launch.text("kv_cache_dtype");
  if (!sm100) {
    problem = "requires an SM100/SM103 (Blackwell) GPU.";
  } else if (kv != "auto" && kv != kFp8) {
    problem = fmt::format("requires kv_cache_dtype=fp8_e4m3, got {}.", kv);
  } else if (launch.flag("enable_hisparse")) {
    problem = "does not support enable_hisparse.";
  } else if (launch.size("attn_cp_size") > 1 || launch.size("dcp_size") > 1 ||
             launch.flag("enable_prefill_cp")) {
    problem = "does not support context parallelism (prefill CP, attention CP, or decode CP).";
  } else if (launch.text("disaggregation_mode") != "null") {
    problem = "does not support PD disaggregation yet.";
  } else if (launch.integer("chunked_prefill_size").value_or(0) <= 0) {
    problem = "requires chunked prefill (--chunked-prefill-size > 0).";
  }
  if (!problem.empty()) launch.assertion_error(kV4Kernel, "--dsv4-attn-backend trtllm " + problem);
}

void check_v4_speculation(Launch& launch) {
  const std::string algorithm = launch.text("speculative_algorithm");
  const std::string& name = launch.model().architecture();
  if (algorithm.empty()) return;
  if (algorithm != "EAGLE" && algorithm != "DSPARK") {
    return launch.assertion_error(
        kV4Speculation,
        fmt::format("Only EAGLE and DSPARK speculative algorithms are supported for {}", name));
  }
  if (algorithm == "EAGLE" && launch.integer("speculative_eagle_topk") != 1) {
    launch.assertion_error(
        kV4Speculation,
        fmt::format("Only EAGLE speculative algorithm with topk == 1 is supported for {}", name));
  }
}

}  // namespace

void deepseek_v4_defaults(Launch& launch) {
  if (!launch.model().is("DeepseekV4ForCausalLM")) return;
  constexpr std::int64_t kRequests = 256;
  v4_kv_dtype(launch);
  if (launch.refused()) return;
  if (launch.text("dsv4_attn_backend") == "auto") {
    launch.declare(kV4Kernel, "dsv4_attn_backend", text_value(v4_kernel(launch)));
  }
  check_v4_kernel(launch);
  if (launch.refused()) return;
  if (launch.unset("max_running_requests")) {
    launch.declare(kV4Requests, "max_running_requests", integer_value(kRequests));
    launch.warn(kV4Requests, fmt::format("Setting max_running_requests to {} for {}.", kRequests,
                                         launch.model().architecture()));
  }
  check_v4_speculation(launch);
}

}  // namespace kernelpath::engines::sglang
