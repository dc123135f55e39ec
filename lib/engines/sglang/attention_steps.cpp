#include "base/text.h"
#include "engines/sglang/rule_ids.h"
#include "engines/sglang/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

// Source: arg_groups/attention_hook.py, arg_groups/model_override_base.py, arg_groups/overrides.py.
namespace kernelpath::engines::sglang {
namespace {

constexpr std::int64_t kLongContext = 8192;

// No tree of drafts is known at this moment, so kernels of a chain can serve.
bool linear_speculation(const Launch& launch) {
  const auto topk = launch.integer("speculative_eagle_topk");
  const auto page = launch.integer("page_size");
  return !topk || (*topk == 1 && (!page || *page == 1));
}

std::string default_mha_backend(const Launch& launch) {
  const Platform& platform = launch.platform();
  const bool linear = linear_speculation(launch);
  const std::string algorithm = launch.text("speculative_algorithm");
  const bool chain_known = algorithm.empty() || !launch.unset("speculative_eagle_topk") ||
                           to_upper(algorithm) == "DFLASH";
  if (platform.sm90() && linear) return "fa3";
  if (platform.sm100() && linear && chain_known) {
    return launch.model().has_asymmetric_kv() ? "fa4" : "trtllm_mha";
  }
  if (platform.hip()) return "aiter";
  const bool flashinfer = platform.has_flashinfer() && !launch.model().has_attention_sinks;
  return flashinfer ? "flashinfer" : "triton";
}

std::string default_mla_backend(const Launch& launch) {
  const Platform& platform = launch.platform();
  if (platform.sm90()) return "fa3";
  if (platform.sm100()) return "flashinfer";
  if (!platform.hip()) return "triton";
  constexpr std::int64_t kSmall = 16;
  constexpr std::int64_t kLarge = 128;
  const std::int64_t heads = launch.model().kv_heads_per_rank(launch.size("tp_size"));
  return heads == kSmall || heads == kLarge ? "aiter" : "triton";
}

// Both phases' options agree: they are the base. Else a missing base gets the default.
void fill_base_backend(Launch& launch) {
  const std::string prefill = launch.text("prefill_attention_backend");
  if (!prefill.empty() && prefill == launch.text("decode_attention_backend")) {
    launch.declare(kAttentionSplitAgrees, "attention_backend", text_value(prefill));
    return;
  }
  if (!launch.unset("attention_backend")) return;
  const std::string backend = default_attention_backend(launch);
  launch.info(kAttentionDefault,
              fmt::format("Attention backend not specified. Use {} backend by default.", backend));
  launch.declare(kAttentionDefault, "attention_backend", text_value(backend));
}

void drop_graphs(Launch& launch) {
  const std::string backend = launch.text("attention_backend");
  if (backend == "torch_native") {
    launch.warn(kAttentionNoGraph,
                "Cuda graph is disabled because of using torch native attention backend");
    launch.disable_graphs(kAttentionNoGraph);
  }
  if (backend != "flex_attention") return;
  launch.warn(kAttentionNoGraph,
              "Cuda graph is disabled because of using torch Flex Attention backend");
  launch.disable_graphs(kAttentionNoGraph);
  if (!launch.unset("speculative_algorithm")) {
    launch.assertion_error(kAttentionFlexSpeculation,
                           "Speculative decoding is currently not supported with Flex Attention "
                           "backend");
  }
}

void whisper_cache(Launch& launch) {
  const ModelFacts& model = launch.model();
  const bool whisper = contains(model.architectures, "WhisperForConditionalGeneration");
  if (!model.is_encoder_decoder || launch.flag("disable_radix_cache") || !whisper) return;
  launch.info(kAttentionWhisper, "Radix cache is disabled for Whisper");
  launch.declare(kAttentionWhisper, "disable_radix_cache", boolean_value(true));
}

// --- page sizes that a backend needs -------------------------------------------------------------

constexpr std::string_view kBase = "attention_backend";
constexpr std::string_view kPrefill = "prefill_attention_backend";
constexpr std::string_view kDecode = "decode_attention_backend";
constexpr std::string_view kDraft = "speculative_draft_attention_backend";

bool any_is(const Launch& launch, std::initializer_list<std::string_view> fields,
            std::string_view backend) {
  return std::any_of(fields.begin(), fields.end(),
                     [&](std::string_view field) { return launch.text(field) == backend; });
}

bool among(std::optional<std::int64_t> page, std::initializer_list<std::int64_t> sizes) {
  return page && std::find(sizes.begin(), sizes.end(), *page) != sizes.end();
}

void snap_pages(Launch& launch) {
  constexpr std::int64_t kPage = 64;
  const std::optional<std::int64_t> before = launch.integer("page_size");
  std::optional<std::int64_t> page = before;
  const auto snap = [&](std::string_view rule, std::string_view who, std::string_view sizes) {
    launch.warn(rule, fmt::format("{} page_size of {}, changing page_size from {} to {}.", who,
                                  sizes, python_none(page), kPage));
    page = kPage;
  };
  if (any_is(launch, {kBase, kDecode}, "flashmla")) {
    launch.warn(kPageFlashmla, "FlashMLA only supports a page_size of 64, change page_size to 64.");
    page = kPage;
  }
  if (any_is(launch, {kBase, kDecode}, "trtllm_mla") && !among(page, {32, 64})) {
    snap(kPageTrtllmMla, "TensorRT-LLM MLA only supports", "32 or 64");
  }
  if (any_is(launch, {kBase, kDecode, kPrefill}, "cutedsl_mla") && !among(page, {32, 64})) {
    snap(kPageCutedsl, "CuteDSL MLA only supports", "32 or 64");
  }
  if (any_is(launch, {kBase, kDecode, kPrefill, kDraft}, "trtllm_mha") &&
      !among(page, {16, 32, 64, 128})) {
    snap(kPageTrtllmMha, "TensorRT-LLM MHA only supports", "16, 32, 64 or 128");
  }
  if (any_is(launch, {kBase, kDecode, kPrefill}, "hpc_ops") && page != kPage) {
    snap(kPageHpcOps, "HPC-Ops attention only supports a", "64");
  }
  if (page != before) launch.declare(kPageSnap, "page_size", integer_value(page));
}

void check_trtllm_mla(Launch& launch) {
  if (!any_is(launch, {kBase, kDecode}, "trtllm_mla")) return;
  if (!launch.platform().blackwell()) {
    return launch.value_error(kTrtllmMlaDevice,
                              "TRTLLM MLA backend is only supported on Blackwell GPUs "
                              "(SM100/SM12x). Please use a different backend.");
  }
  const std::string kv = launch.text("kv_cache_dtype");
  if (kv == "fp8_e4m3" || kv == "bf16" || kv == "auto") return;
  launch.value_error(kTrtllmMlaKv,
                     "TensorRT-LLM MLA backend only supports kv-cache-dtype of fp8_e4m3, bf16, or "
                     "auto.");
}

void check_cutedsl(Launch& launch) {
  if (!any_is(launch, {kBase, kDecode, kPrefill}, "cutedsl_mla")) return;
  if (launch.text(kPrefill) == "cutedsl_mla") {
    return launch.assertion_error(kCutedslDecodeOnly, "CuteDSL MLA only supports decoding for now");
  }
  if (!launch.platform().sm100()) {
    return launch.value_error(kCutedslDevice,
                              "CuteDSL MLA backend is only supported on Blackwell GPUs (SM100). "
                              "Please use a different backend.");
  }
  const std::string kv = launch.text("kv_cache_dtype");
  if (kv != "fp8_e4m3" && kv != "bf16" && kv != "bfloat16" && kv != "auto") {
    return launch.value_error(kCutedslKv,
                              "CuteDSL MLA backend only supports kv-cache-dtype of fp8_e4m3, bf16, "
                              "or auto.");
  }
  if (launch.unset(kPrefill)) {
    launch.declare(kCutedslPrefill, std::string(kPrefill), text_value("trtllm_mla"));
  }
}

void check_trtllm_mha(Launch& launch) {
  const Platform& platform = launch.platform();
  const bool prefill = launch.prefill_backend() == "trtllm_mha";
  const bool decode = launch.decode_backend() == "trtllm_mha";
  const bool device = platform.sm90() || platform.sm100() || platform.sm120();
  if (prefill && !device) {
    return launch.value_error(kTrtllmMhaPrefill,
                              "TRTLLM MHA backend for prefill requires Hopper (SM90), Blackwell "
                              "(SM100), or SM120 GPUs. Please use a different prefill backend.");
  }
  const std::string* skip =
      launch.variable_text("SGLANG_SKIP_SOFTMAX_PREFILL_THRESHOLD_SCALE_FACTOR");
  const bool skips = skip != nullptr && *skip != "0" && *skip != "0.0" && !skip->empty();
  if (prefill && platform.sm120() && (launch.text("kv_cache_dtype") == "fp8_e4m3" || skips)) {
    return launch.value_error(
        kTrtllmMhaSm120,
        "TRTLLM FMHAv2 prefill on SM120 does not support fp8_e4m3 KV cache or "
        "skip-softmax.");
  }
  if (decode && !device) {
    return launch.value_error(kTrtllmMhaDecode,
                              "TRTLLM MHA backend for decode is only supported on Hopper (SM90), "
                              "Blackwell (SM100) and (SM120) GPUs. Please use a different decode "
                              "backend.");
  }
  if (prefill && !platform.sm100() && launch.size("attn_cp_size") > 1) {
    launch.value_error(kTrtllmMhaCp,
                       "Prefill context parallelism with the TRTLLM MHA prefill backend requires "
                       "SM100 (trtllm-gen context kernel): the SM90/SM120 fmha_v2 prefill path "
                       "does not implement CP shard masking.");
  }
}

void fa3_e5m2(Launch& launch) {
  if (launch.text(kBase) != "fa3" || launch.text("kv_cache_dtype") != "fp8_e5m2") return;
  launch.warn(kAttentionFa3E5m2,
              "FlashAttention3 only supports fp8_e4m3 if using FP8; Setting attention backend to "
              "triton.");
  launch.declare(kAttentionFa3E5m2, std::string(kBase), text_value("triton"));
}

void fa4_page(Launch& launch) {
  constexpr std::int64_t kPage = 128;
  if (!any_is(launch, {kBase, kDecode, kPrefill}, "fa4") || launch.mla() ||
      !launch.platform().sm100() || launch.integer("speculative_eagle_topk").value_or(0) > 1) {
    return;
  }
  if (contains(launch.model().architectures, "DiffusionGemmaForBlockDiffusion")) {
    launch.declare(kPageFa4, "page_size", integer_value(1));
    return;
  }
  launch.warn(kPageFa4, fmt::format("FA4 backend only supports page size 128 for non-MLA model "
                                    "architectures, changing page_size from {} to 128.",
                                    python_none(launch.integer("page_size"))));
  launch.declare(kPageFa4, "page_size", integer_value(kPage));
}

void aiter_memory(Launch& launch) {
  constexpr double kShare = 0.85;
  if (launch.text(kBase) != "aiter" || launch.model().context_len <= kLongContext) return;
  const json::Value& given = launch.arguments().value("mem_fraction_static");
  if (!given.is_number()) return;  // the engine's own estimate is scaled alike
  launch.declare(kAiterMemory, "mem_fraction_static",
                 json::Value::number(given.as_double() * kShare));
}

void platform_fallbacks(Launch& launch) {
  if (launch.text(kBase) != "intel_amx" || !launch.device_is("cpu") || launch.platform().has_amx) {
    return;
  }
  launch.warn(kAttentionNoAmx,
              "The current platform does not support Intel AMX, will fallback to torch_native "
              "backend.");
  launch.declare(kAttentionNoAmx, std::string(kBase), text_value("torch_native"));
}

void xpu_page(Launch& launch) {
  constexpr std::int64_t kPage = 128;
  if (launch.prefill_backend() != "intel_xpu" && launch.decode_backend() != "intel_xpu") return;
  const auto page = launch.integer("page_size");
  const bool fits = launch.mla() ? among(page, {64, 128, 16, 32}) : among(page, {64, 128});
  if (fits) return;
  launch.warn(kPageXpu,
              fmt::format("Intel XPU attention backend{} only supports page_sizes of {}, changing "
                          "page_size from {} to 128.",
                          launch.mla() ? " for MLA" : "",
                          launch.mla() ? "[64, 128, 16, 32]" : "[64, 128]", python_none(page)));
  launch.declare(kPageXpu, "page_size", integer_value(kPage));
}

// --- deterministic inference ---------------------------------------------------------------------

bool deterministic_deepseek(const Launch& launch) {
  return launch.profile().in_group("deterministic_deepseek", launch.model().architecture());
}

void deterministic_backend(Launch& launch) {
  const Names& choices = launch.profile().group("deterministic_backends");
  const Platform& platform = launch.platform();
  const std::string given = launch.text(kBase);
  if (!given.empty()) {
    if (contains(choices, given)) return;
    return launch.value_error(
        kDeterministicChoice,
        fmt::format("Currently only {} attention backends are supported for deterministic "
                    "inference, but you explicitly specified '{}'.",
                    python_list(choices), given));
  }
  std::string backend = "fa3";
  if (platform.sm100() || platform.sm120()) {
    backend = deterministic_deepseek(launch) ? "triton" : "flashinfer";
  }
  launch.warn(kDeterministicBackend,
              fmt::format("Attention backend not specified. Falling back to '{}' for deterministic "
                          "inference. You can explicitly set --attention-backend to one of {}.",
                          backend, python_list(choices)));
  launch.declare(kDeterministicBackend, std::string(kBase), text_value(backend));
}

void deterministic_mla(Launch& launch) {
  const Names& choices = launch.profile().group("deterministic_radix_backends");
  const std::string backend = launch.text(kBase);
  const bool deepseek =
      deterministic_deepseek(launch) || launch.model().is("Glm5NextForConditionalGeneration");
  if (!deepseek) return;
  if (!contains(choices, backend)) {
    return launch.value_error(
        kDeterministicMla,
        fmt::format("Currently only {} attention backends are supported for deterministic "
                    "inference with absorbed-MLA models. But you're using {}.",
                    python_list(choices), backend));
  }
  const bool device = launch.platform().sm100() || launch.platform().sm110();
  if (backend == "fa4" && !device) {
    launch.value_error(kDeterministicMla,
                       "Deterministic inference with absorbed-MLA models on the fa4 attention "
                       "backend requires SM100/SM110: it runs absorbed MLA, whose qv argument "
                       "flash_attn.cute only implements on those archs.");
  }
}

void deterministic_radix(Launch& launch) {
  const std::string backend = launch.text(kBase);
  if (contains(launch.profile().group("deterministic_radix_backends"), backend)) return;
  launch.declare(kDeterministicRadix, "disable_radix_cache", boolean_value(true));
  launch.warn(kDeterministicRadix,
              fmt::format("Currently radix cache is not compatible with {} attention backend for "
                          "deterministic inference. It will be supported in the future.",
                          backend));
}

void deterministic_ranks(Launch& launch) {
  if (launch.size("tp_size") <= 1) return;
  if (launch.platform().hip()) {
    if (launch.size("tp_size") > 2 && launch.flag("disable_custom_all_reduce")) {
      return launch.value_error(
          kDeterministicReduce,
          "--disable-custom-all-reduce cannot be combined with --enable-deterministic-inference on "
          "ROCm when --tp-size is above 2: the all-reduce would run through RCCL, which is not "
          "batch-invariant.");
    }
    launch.info(kDeterministicReduce, "AMD/ROCm: Using 1-stage all-reduce kernel (deterministic)");
    return;
  }
  launch.declare(kDeterministicReduce, "disable_custom_all_reduce", boolean_value(true));
  launch.declare(kDeterministicReduce, "enable_torch_symm_mem", boolean_value(false));
  launch.warn(kDeterministicReduce,
              "NCCL_ALGO is set to 'allreduce:tree', the NCCL channel count is pinned, and custom "
              "and symmetric-memory all reduce are disabled for deterministic inference when TP "
              "size > 1.");
}

void deterministic_sampling(Launch& launch) {
  if (launch.text("sampling_backend") == "ascend") return;
  launch.warn(kDeterministicSampling,
              "Sampling backend is set to pytorch for deterministic inference.");
  launch.declare(kDeterministicSampling, "sampling_backend", text_value("pytorch"));
}

}  // namespace

std::string default_attention_backend(const Launch& launch) {
  if (contains(launch.model().architectures, "WhisperForConditionalGeneration")) {
    return "flashinfer";
  }
  return launch.mla() ? default_mla_backend(launch) : default_mha_backend(launch);
}

void sampling_backend_default(Launch& launch) {
  if (!launch.unset("sampling_backend")) return;
  launch.fill(kSamplingDefault, "sampling_backend",
              text_value(launch.platform().has_flashinfer() ? "flashinfer" : "pytorch"));
}

void deterministic_inference(Launch& launch) {
  if (!launch.unset("rl_on_policy_target")) {
    launch.warn(kDeterministicOnPolicy,
                "Enable deterministic inference because of rl_on_policy_target.");
    launch.declare(kDeterministicOnPolicy, "enable_deterministic_inference", boolean_value(true));
  }
  if (!launch.flag("enable_deterministic_inference")) return;
  if (launch.flag("enable_aiter_allreduce_fusion")) {
    launch.warn(kDeterministicAllReduce,
                "Disable --enable-aiter-allreduce-fusion because deterministic inference is "
                "enabled.");
    launch.declare(kDeterministicAllReduce, "enable_aiter_allreduce_fusion", boolean_value(false));
  }
  if (!launch.unset("flashinfer_allreduce_fusion_backend")) {
    launch.warn(kDeterministicAllReduce,
                "Disable --flashinfer-allreduce-fusion-backend because deterministic inference is "
                "enabled.");
    launch.declare(kDeterministicAllReduce, "flashinfer_allreduce_fusion_backend",
                   json::Value::null());
  }
  deterministic_sampling(launch);
  constexpr std::array kSteps = {deterministic_backend, deterministic_mla, deterministic_radix,
                                 deterministic_ranks};
  for (const auto& step : kSteps) {
    step(launch);
    if (launch.refused()) return;
  }
}

void attention_backend_compatibility(Launch& launch) {
  constexpr std::array kSteps = {fill_base_backend, drop_graphs,   whisper_cache,      snap_pages,
                                 check_trtllm_mla,  check_cutedsl, check_trtllm_mha,   fa3_e5m2,
                                 fa4_page,          aiter_memory,  platform_fallbacks, xpu_page};
  for (const auto& step : kSteps) {
    step(launch);
    if (launch.refused()) return;
  }
}

void multi_item_scoring(Launch& launch) {
  if (!launch.flag("enable_mis")) return;
  if (launch.graph().decode != "disabled") {
    launch.warn(kMultiItem, "CUDA graph is disabled because --enable-mis is set.");
  }
  launch.disable_graphs(kMultiItem);
  if (!launch.flag("disable_radix_cache")) {
    launch.warn(kMultiItem, "Radix cache is disabled because --enable-mis is set.");
    launch.declare(kMultiItem, "disable_radix_cache", boolean_value(true));
  }
  if (launch.integer("chunked_prefill_size") != -1) {
    launch.warn(kMultiItem, "Chunked prefill is disabled because --enable-mis is set.");
    launch.declare(kMultiItem, "chunked_prefill_size", integer_value(-1));
  }
  const std::string prefill = launch.prefill_backend();
  const std::string decode = launch.decode_backend();
  if (prefill == "flashinfer" && decode == "flashinfer") return;
  launch.assertion_error(
      kMultiItem,
      fmt::format("Multi-item scoring requires flashinfer attention backend for custom attention "
                  "mask support. Please set --attention-backend flashinfer when using "
                  "--enable-mis. Current backends: prefill={}, decode={}",
                  prefill, decode));
}

}  // namespace kernelpath::engines::sglang
