#include "engines/sglang/rule_ids.h"
#include "engines/sglang/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

// Source: arg_groups/moe_hook.py, arg_groups/mega_moe_hook.py, arg_groups/overrides.py.
namespace kernelpath::engines::sglang {
namespace {

bool one_of(const std::string& text, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), text) != names.end();
}

std::string nvfp4_online_runner(Launch& launch, const std::string& runner) {
  const bool mega = launch.text("moe_a2a_backend") == "flashinfer_megamoe" &&
                    launch.variable("SGLANG_FLASHINFER_CUTEDSL_NVFP4_W4A16");
  if (!launch.platform().sm100()) {
    launch.value_error(kMoeNvfp4Online,
                       "--quantization nvfp4_online is supported only on NVIDIA Blackwell "
                       "SM100/SM103 GPUs.");
    return runner;
  }
  if (runner == "auto") return mega ? "flashinfer_megamoe" : "flashinfer_trtllm";
  const bool served =
      one_of(runner, {"flashinfer_trtllm", "flashinfer_trtllm_routed", "flashinfer_cutedsl"}) ||
      (runner == "flashinfer_megamoe" && mega);
  if (!served) {
    launch.value_error(kMoeNvfp4Online,
                       "--quantization nvfp4_online supports only --moe-runner-backend "
                       "flashinfer_trtllm or flashinfer_trtllm_routed, or flashinfer_cutedsl; "
                       "flashinfer_megamoe requires --moe-a2a-backend flashinfer_megamoe and "
                       "SGLANG_FLASHINFER_CUTEDSL_NVFP4_W4A16=1.");
  }
  return runner;
}

std::string mxfp8_runner(Launch& launch, const std::string& runner) {
  Names allowed = {"cutlass", "deep_gemm", "flashinfer_megamoe", "flashinfer_trtllm",
                   "flashinfer_trtllm_routed"};
  const Platform& platform = launch.platform();
  if (platform.gfx95() || (platform.hip() && runner == "triton")) allowed.emplace_back("triton");
  if (platform.gfx95() && launch.variable("SGLANG_USE_AITER")) allowed.emplace_back("aiter");
  std::string preferred = platform.gfx95() ? "triton" : "flashinfer_trtllm";
  if (launch.text("moe_a2a_backend") == "flashinfer_megamoe") preferred = "flashinfer_megamoe";
  if (runner == "auto") return preferred;
  if (contains(allowed, runner)) return runner;
  launch.warn(kMoeMxfp8, fmt::format("mxfp8 quantization supports only {} backends. Overriding "
                                     "'{}'.",
                                     fmt::join(allowed, ", "), runner));
  return preferred;
}

void constrain_runner(Launch& launch) {
  const std::string before = launch.text("moe_runner_backend");
  const std::string quantization = launch.text("quantization");
  const Platform& platform = launch.platform();
  std::string runner = before;
  if (quantization == "nvfp4_online") runner = nvfp4_online_runner(launch, runner);
  if (launch.refused()) return;
  if (quantization == "mxfp8") runner = mxfp8_runner(launch, runner);
  if (runner == "auto" && quantization == "modelopt_fp4" &&
      (platform.sm120() || platform.sm110())) {
    runner = "flashinfer_cutlass";
    launch.info(kMoeFp4Cutlass,
                "Use flashinfer_cutlass as MoE runner backend on SM110/SM120 for modelopt_fp4 "
                "(trtllm-gen MoE kernels are SM100-only)");
  }
  if (runner != before) launch.declare(kMoeRunner, "moe_runner_backend", text_value(runner));
}

// Which checkpoints a runner of experts takes; an empty name is an unquantised one.
struct RunnerRow {
  std::string_view runner;
  std::initializer_list<std::string_view> quantizations;
  bool whole_or_no_expert_parallelism;
  std::string_view name;  // in the engine's words
};

const RunnerRow* find_runner(std::string_view runner) {
  static const std::array kRows = {
      RunnerRow{"flashinfer_cutlass",
                {"modelopt_fp4", "modelopt_fp8", "modelopt_mixed", ""},
                true,
                "FlashInfer Cutlass MOE"},
      RunnerRow{"flashinfer_cutedsl",
                {"modelopt_fp4", "modelopt_mixed", "nvfp4_online"},
                true,
                "FlashInfer CuteDSL MOE"},
      RunnerRow{"flashinfer_trtllm",
                {"modelopt_fp4", "nvfp4_online", "fp8", "mxfp8", "modelopt_fp8", "modelopt_mixed",
                 "compressed-tensors", ""},
                false,
                "FlashInfer TRTLLM MOE"},
      RunnerRow{"experimental_sgl_trtllm",
                {"modelopt_fp4", "nvfp4_online", "fp8", "mxfp8", "modelopt_fp8", "modelopt_mixed",
                 "compressed-tensors", ""},
                false,
                "FlashInfer TRTLLM MOE"},
      RunnerRow{"flashinfer_trtllm_routed",
                {"fp8", "mxfp8", "modelopt_fp4", "modelopt_mixed", "nvfp4_online",
                 "minimax_m3_nvfp4", ""},
                false,
                "FlashInfer TRTLLM routed MOE"},
  };
  const auto* const found = std::find_if(
      kRows.begin(), kRows.end(), [&](const RunnerRow& row) { return row.runner == runner; });
  return found == kRows.end() ? nullptr : &*found;
}

void check_runner(Launch& launch) {
  const std::string runner = launch.text("moe_runner_backend");
  const std::string quantization = launch.text("quantization");
  const RunnerRow* row = find_runner(runner);
  if (row == nullptr) return;
  const bool hybrid = runner == "flashinfer_cutedsl" && launch.model().has_nvfp4_moe;
  if (!one_of(quantization, row->quantizations) && !hybrid) {
    return launch.assertion_error(kMoeRunnerQuant,
                                  fmt::format("Invalid quantization {}. {} does not support it.",
                                              python_repr(quantization), row->name));
  }
  const std::int64_t ep = launch.size("ep_size");
  if (row->whole_or_no_expert_parallelism && ep != 1 && ep != launch.size("tp_size")) {
    return launch.assertion_error(
        kMoeRunnerEp, "The expert parallel size must be 1 or the same as the tensor parallel size");
  }
  const std::string a2a = launch.text("moe_a2a_backend");
  if (runner == "flashinfer_cutedsl" && !one_of(a2a, {"none", "deepep", "flashinfer"})) {
    launch.assertion_error(kMoeRunnerQuant,
                           fmt::format("flashinfer_cutedsl supports moe_a2a_backend='none', "
                                       "'deepep', or 'flashinfer', got '{}'.",
                                       a2a));
  }
}

void no_shared_fusion(Launch& launch) {
  struct Row {
    std::string_view runner;
    std::string_view name;
  };
  constexpr std::array kRows = {Row{"flashinfer_cutedsl", "FlashInfer CuteDSL MoE"},
                                Row{"flashinfer_trtllm", "FlashInfer TRTLLM MoE"},
                                Row{"experimental_sgl_trtllm", "FlashInfer TRTLLM MoE"},
                                Row{"flashinfer_trtllm_routed", "FlashInfer TRTLLM routed MoE"}};
  const std::string runner = launch.text("moe_runner_backend");
  if (runner.starts_with("lora_")) {
    launch.warn(kMoeNoFusion, "LoRA MoE keeps shared experts separate for adapter attachment.");
    launch.declare(kMoeNoFusion, "disable_shared_experts_fusion", boolean_value(true));
    return;
  }
  const auto* const found = std::find_if(kRows.begin(), kRows.end(),
                                         [&](const Row& row) { return row.runner == runner; });
  if (found == kRows.end()) return;
  launch.warn(kMoeNoFusion, fmt::format("{} is enabled. --disable-shared-experts-fusion is "
                                        "automatically set.",
                                        found->name));
  launch.declare(kMoeNoFusion, "disable_shared_experts_fusion", boolean_value(true));
}

// --- all-to-all ----------------------------------------------------------------------------------

void adopt_backend(Launch& launch) {
  const std::string before = launch.text("moe_a2a_backend");
  if (launch.flag("enable_waterfill") && before != "deepep" && before != "megamoe") {
    launch.warn(
        kA2aWaterfill,
        "moe_a2a_backend is overridden to 'deepep' because Waterfill requires the DeepEP or "
        "MegaMOE backend.");
    launch.declare(kA2aWaterfill, "moe_a2a_backend", text_value("deepep"));
  }
  const std::string backend = launch.text("moe_a2a_backend");
  if (!launch.profile().in_group("a2a_spans_experts", backend)) return;
  const std::int64_t ep = launch.size("ep_size");
  const std::int64_t tp = launch.size("tp_size");
  if (ep != tp) {
    launch.info(kA2aExperts, fmt::format("{} MoE is enabled. The expert parallel size is adjusted "
                                         "from {} to the tensor parallel size [{}].",
                                         backend, ep, tp));
  }
  launch.declare(kA2aExperts, "ep_size", integer_value(tp));
}

void a2a_fusion(Launch& launch) {
  const std::string backend = launch.text("moe_a2a_backend");
  if (one_of(backend, {"deepep", "megamoe"}) && launch.flag("enable_waterfill")) {
    if (!launch.flag("disable_shared_experts_fusion")) return;
    launch.warn(kA2aWaterfill,
                "disable_shared_experts_fusion is overridden to False because Waterfill requires "
                "shared expert fusion.");
    launch.declare(kA2aWaterfill, "disable_shared_experts_fusion", boolean_value(false));
    return;
  }
  if (one_of(backend, {"flashinfer", "flashinfer_megamoe"})) {
    launch.warn(kA2aFusion,
                "Flashinfer MoE A2A is enabled. --disable-shared-experts-fusion is automatically "
                "set.");
  } else if (backend != "deepep_v2") {
    return;
  }
  launch.declare(kA2aFusion, "disable_shared_experts_fusion", boolean_value(true));
}

void check_flashinfer_a2a(Launch& launch) {
  if (launch.text("moe_a2a_backend") != "flashinfer") return;
  const bool whole = launch.attention_dp() && launch.size("attn_dp_size") == launch.size("tp_size");
  const std::int64_t tp = launch.size("tp_size");
  const bool muse = launch.model().is("MuseSparkForConditionalGeneration") &&
                    launch.flag("enable_layernorm_sp") && !launch.attention_dp() &&
                    tp == launch.size("ep_size") && (tp == 4 || tp == 8);
  if (!whole && !muse) {
    return launch.assertion_error(kA2aFlashinfer,
                                  "Flashinfer MoE A2A requires --attn-dp-size equal to --tp-size, "
                                  "except for Muse Spark TP4/EP4 or TP8/EP8 prefill sequence "
                                  "parallelism.");
  }
  const std::string runner = launch.text("moe_runner_backend");
  if (one_of(runner, {"flashinfer_cutlass", "flashinfer_cutedsl", "flashinfer_trtllm",
                      "flashinfer_trtllm_routed", "deep_gemm"})) {
    return;
  }
  launch.assertion_error(kA2aFlashinfer,
                         "FlashInfer MoE A2A is supported with flashinfer_cutlass, "
                         "flashinfer_cutedsl, flashinfer_trtllm, flashinfer_trtllm_routed, or "
                         "deep_gemm.");
}

void check_deepep(Launch& launch) {
  if (launch.text("moe_a2a_backend") != "deepep") return;
  const std::string mode = launch.text("deepep_mode");
  if (launch.text("moe_runner_backend") == "flashinfer_cutedsl") {
    if (mode == "normal") {
      return launch.value_error(kA2aDeepEp,
                                "flashinfer_cutedsl FP4 MoE only supports DeepEP low_latency "
                                "dispatch (masked layout). Pass --deepep-mode low_latency or "
                                "auto.");
    }
    if (mode == "auto") launch.declare(kA2aDeepEp, "deepep_mode", text_value("low_latency"));
  }
  if (launch.text("deepep_mode") != "normal") return;
  launch.warn(kA2aDeepEp, "Cuda graph is disabled because deepep_mode=`normal`");
  launch.disable_graphs(kA2aDeepEp);
}

void check_pplx(Launch& launch) {
  if (launch.text("moe_a2a_backend") != "pplx") return;
  const std::string mode = launch.text("deepep_mode");
  if (mode == "normal") {
    return launch.value_error(kA2aPplx,
                              "moe_a2a_backend='pplx' only supports low-latency mode; set "
                              "--deepep-mode to 'low_latency' or 'auto'.");
  }
  if (mode == "auto") {
    launch.declare(kA2aPplx, "deepep_mode", text_value("low_latency"));
    launch.warn(kA2aPplx, "auto set deepep_mode=`low_latency` for PPLX EP");
  }
  if (launch.size("attn_dp_size") < 2) {
    return launch.assertion_error(kA2aPplx,
                                  "moe_a2a_backend='pplx' requires attention DP with at least 2 "
                                  "groups (--attn-dp-size >= 2).");
  }
  const std::string runner = launch.text("moe_runner_backend");
  if (!one_of(runner, {"deep_gemm", "auto"})) {
    return launch.assertion_error(kA2aPplx,
                                  "moe_a2a_backend='pplx' is only supported with "
                                  "--moe-runner-backend deep_gemm (or auto).");
  }
  if (runner == "auto") {
    launch.declare(kA2aPplx, "moe_runner_backend", text_value("deep_gemm"));
    launch.warn(kA2aPplx, "auto set moe_runner_backend=`deep_gemm` for PPLX EP");
  }
}

// --- MegaMoE -------------------------------------------------------------------------------------

std::int64_t ceil_align(std::int64_t value, std::int64_t to) {
  const std::int64_t step = std::max<std::int64_t>(1, to);
  return (value + step - 1) / step * step;
}

std::int64_t token_capacity(const Launch& launch) {
  constexpr std::int64_t kDefault = 8192;
  const std::string* text =
      launch.variable_text("SGLANG_OPT_DEEPGEMM_MEGA_MOE_NUM_MAX_TOKENS_PER_RANK");
  if (text == nullptr || text->empty() || text->size() > 12 ||
      !std::all_of(text->begin(), text->end(), [](char c) { return c >= '0' && c <= '9'; })) {
    return kDefault;
  }
  return std::stoll(*text);
}

bool needs_budget(const Launch& launch) {
  constexpr std::array<std::string_view, 9> kNoFallback = {
      "DeepseekV4ForCausalLM",
      "InternS2PreviewForConditionalGeneration",
      "MellumForCausalLM",
      "Qwen2MoeForCausalLM",
      "Qwen3MoeForCausalLM",
      "Qwen3NextForCausalLM",
      "Qwen3VLMoeForConditionalGeneration",
      "Qwen3_5MoeForCausalLM",
      "Qwen3_5MoeForConditionalGeneration"};
  const std::string quantization = launch.text("quantization");
  return quantization == "modelopt_fp4" || quantization == "minimax_m3_nvfp4" ||
         launch.model().quant_algo.find("FP4") != std::string::npos ||
         std::find(kNoFallback.begin(), kNoFallback.end(), launch.model().architecture()) !=
             kNoFallback.end();
}

}  // namespace

void moe_kernel_config(Launch& launch) {
  for (const auto& step : {constrain_runner, check_runner, no_shared_fusion}) {
    step(launch);
    if (launch.refused()) return;
  }
  if (launch.text("moe_runner_backend") == "cutlass" && launch.size("ep_size") != 1 &&
      one_of(launch.text("quantization"), {"fp8", "mxfp8"})) {
    launch.assertion_error(kMoeRunnerEp,
                           "FP8/MXFP8 Cutlass MoE is only supported with ep_size == 1");
  }
}

void all_to_all_moe(Launch& launch) {
  for (const auto& step :
       {adopt_backend, a2a_fusion, check_deepep, check_flashinfer_a2a, check_pplx}) {
    step(launch);
    if (launch.refused()) return;
  }
}

void mega_moe_token_budget(Launch& launch) {
  if (launch.text("moe_a2a_backend") != "megamoe" || launch.platform().hip()) return;
  if (!needs_budget(launch)) return;
  const std::int64_t capacity = token_capacity(launch);
  const std::string& name = launch.model().architecture();
  const std::int64_t tp = launch.size("tp_size");
  const std::int64_t dp = std::max<std::int64_t>(1, launch.size("attn_dp_size"));
  const std::int64_t cp = std::max<std::int64_t>(1, launch.size("attn_cp_size"));
  std::int64_t decode = launch.graph().decode_max_bs.value_or(0);
  const auto requests = launch.integer("max_running_requests");
  if (requests) decode = std::min(decode, ceil_align(*requests / dp, tp / dp));
  if (!launch.unset("speculative_algorithm")) {
    decode *= launch.integer("speculative_num_draft_tokens").value_or(1);
  }
  if (launch.text("disaggregation_mode") != "prefill" && capacity < decode) {
    return launch.value_error(
        kMegaMoeBudget,
        fmt::format("{} with MegaMoE requires SGLANG_OPT_DEEPGEMM_MEGA_MOE_NUM_MAX_TOKENS_PER_RANK "
                    "to cover the largest decode / verify forward on one rank: {} tokens, got {}.",
                    name, decode, capacity));
  }
  if (launch.text("disaggregation_mode") == "decode") return;
  const std::int64_t chunk = launch.integer("chunked_prefill_size").value_or(0);
  if (chunk <= 0) {
    return launch.value_error(kMegaMoeBudget,
                              fmt::format("{} with MegaMoE requires chunked prefill to be enabled. "
                                          "Set --chunked-prefill-size to a positive value.",
                                          name));
  }
  const bool context = launch.flag("enable_prefill_cp");
  const std::int64_t local = context ? (chunk + cp - 1) / cp : chunk / dp;
  const std::int64_t needed = context ? local : ceil_align(local, tp / dp / cp);
  if (capacity >= needed && local > 0) return;
  launch.value_error(
      kMegaMoeBudget,
      fmt::format(
          "{} with MegaMoE requires SGLANG_OPT_DEEPGEMM_MEGA_MOE_NUM_MAX_TOKENS_PER_RANK to "
          "cover each rank's effective prefill token budget. Current values: "
          "chunked_prefill_size={}, required_tokens_per_rank={}, "
          "SGLANG_OPT_DEEPGEMM_MEGA_MOE_NUM_MAX_TOKENS_PER_RANK={}.",
          name, chunk, needed, capacity));
}

}  // namespace kernelpath::engines::sglang
