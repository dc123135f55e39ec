#include "base/text.h"
#include "engines/sglang/rule_ids.h"
#include "engines/sglang/steps.h"

#include <fmt/format.h>

#include <algorithm>

// Source: arg_groups/kv_cache_hook.py, arg_groups/overrides.py (_page_size_default).
namespace kernelpath::engines::sglang {
namespace {

constexpr std::string_view kNvfp4 = "nvfp4";
constexpr std::string_view kTrtllmMha = "trtllm_mha";

// What the prefill backend that the user chose reads: "fp8_e4m3", "nvfp4", or nothing it can.
std::string dequant_of(std::string_view backend) {
  if (backend == "flashinfer") return "fp8_e4m3";
  return backend == kTrtllmMha ? std::string(kNvfp4) : std::string();
}

// The dtype that prefill reads; empty after a refusal.
std::string requested_dequant(Launch& launch) {
  std::string requested = launch.text("prefill_kv_cache_dequant_dtype");
  if (requested != "auto") return requested;
  const std::string backend = launch.prefill_backend();
  requested = dequant_of(backend);
  if (!requested.empty()) return requested;
  if (!backend.empty()) {
    launch.value_error(kNvfp4Prefill,
                       fmt::format("NVFP4 prefill supports an FP8 E4M3 workspace or native NVFP4, "
                                   "but backend '{}' provides neither.",
                                   backend));
    return {};
  }
  return launch.platform().sm100() ? std::string(kNvfp4) : "fp8_e4m3";
}

void check_explicit(Launch& launch, const std::string& dtype, std::string_view target) {
  if (dtype == kNvfp4 && !launch.platform().sm100()) {
    return launch.value_error(kNvfp4Prefill,
                              "Native NVFP4 prefill currently requires SM100; use "
                              "--prefill-kv-cache-dequant-dtype=fp8_e4m3 on this platform.");
  }
  const std::string prefill = launch.text("prefill_attention_backend");
  if (!prefill.empty() && prefill != target) {
    return launch.value_error(
        kNvfp4Prefill,
        fmt::format("--prefill-kv-cache-dequant-dtype={} requires prefill backend '{}', but "
                    "--prefill-attention-backend='{}' was set. Remove the backend option and "
                    "select the KV dtype only.",
                    dtype, target, prefill));
  }
  const std::string decode = launch.text("decode_attention_backend");
  if (!decode.empty() && decode != kTrtllmMha) {
    launch.value_error(kNvfp4Decode,
                       fmt::format("NVFP4 decode requires --decode-attention-backend=trtllm_mha; "
                                   "got '{}'. Remove the backend option; NVFP4 selects the "
                                   "supported decode implementation automatically.",
                                   decode));
  }
}

// --- FP4 -----------------------------------------------------------------------------------------

struct Fp4Launch {
  std::string prefill;
  std::string decode;
  std::string algorithm;  // upper case
  bool native = false;    // NVFP4 read by TensorRT-LLM's kernels on SM100
  bool mixed = false;     // FlashInfer fills, TensorRT-LLM decodes
};

Fp4Launch describe_fp4(const Launch& launch) {
  Fp4Launch fp4{.prefill = launch.prefill_backend(),
                .decode = launch.decode_backend(),
                .algorithm = to_upper(launch.text("speculative_algorithm"))};
  const bool nvfp4 = launch.text("kv_cache_dtype") == kNvfp4;
  fp4.native =
      nvfp4 && launch.platform().sm100() && (fp4.prefill == kTrtllmMha || fp4.decode == kTrtllmMha);
  fp4.mixed = nvfp4 && fp4.prefill == "flashinfer" && fp4.decode == kTrtllmMha;
  return fp4;
}

void check_native_algorithm(Launch& launch, const Fp4Launch& fp4) {
  const std::string& algorithm = fp4.algorithm;
  if (algorithm.empty()) return;
  if (algorithm == "DFLASH" || algorithm == "DSPARK") {
    return launch.value_error(kNvfp4Speculation,
                              fmt::format("SM100 native NVFP4 speculative decoding does not yet "
                                          "support {}; use EAGLE/NEXTN or NGRAM.",
                                          algorithm));
  }
  if (algorithm != "EAGLE" && algorithm != "EAGLE3" && algorithm != "NEXTN" &&
      algorithm != "NGRAM") {
    return launch.value_error(
        kNvfp4Speculation,
        fmt::format("SM100 native NVFP4 speculative decoding supports EAGLE, EAGLE3, NEXTN, and "
                    "breadth-1 NGRAM; got {}.",
                    algorithm));
  }
  const auto breadth = launch.integer("speculative_ngram_max_bfs_breadth");
  if (algorithm == "NGRAM" && breadth != 1) {
    launch.value_error(
        kNvfp4Speculation,
        fmt::format("SM100 native NVFP4 NGRAM speculative decoding requires "
                    "--speculative-ngram-max-bfs-breadth=1 because trtllm_mha supports linear "
                    "target verification only; got {}.",
                    python_none(breadth)));
  }
}

void native_draft(Launch& launch, const Fp4Launch& fp4) {
  if (fp4.algorithm.empty() || fp4.algorithm == "NGRAM") return;
  const std::string draft = launch.text("speculative_draft_attention_backend");
  if (draft.empty()) {
    launch.warn(kNvfp4Draft,
                "SM100 native NVFP4 speculative decoding uses trtllm_mha for the draft worker.");
    launch.declare(kNvfp4Draft, "speculative_draft_attention_backend", text_value(kTrtllmMha));
  } else if (draft != kTrtllmMha) {
    launch.value_error(
        kNvfp4Draft,
        fmt::format("SM100 native NVFP4 speculative decoding requires "
                    "--speculative-draft-attention-backend=trtllm_mha so the draft worker consumes "
                    "its physical NVFP4 KV layout; got '{}'.",
                    draft));
  }
}

void native_features(Launch& launch, const Fp4Launch& fp4) {
  if (fp4.mixed && !fp4.algorithm.empty() &&
      launch.text("speculative_attention_mode") == "prefill") {
    launch.warn(kNvfp4Verify,
                "SM100 mixed NVFP4 speculative decoding routes target verify to trtllm_mha; "
                "overriding --speculative-attention-mode=prefill to decode.");
    launch.declare(kNvfp4Verify, "speculative_attention_mode", text_value("decode"));
  }
  if (launch.text("disaggregation_mode") != "null") {
    return launch.value_error(kNvfp4Features,
                              "SM100 native NVFP4 with trtllm_mha does not yet support PD "
                              "disaggregation because its physical block-scale layout is not "
                              "implemented by the KV transfer path.");
  }
  if (launch.flag("enable_hierarchical_cache") || launch.flag("enable_lmcache")) {
    launch.value_error(kNvfp4Features,
                       "SM100 native NVFP4 with trtllm_mha does not yet support hierarchical KV "
                       "cache or LMCache because their host pools do not preserve the physical "
                       "block-scale layout.");
  }
}

void require_one(Launch& launch, std::string_view who, std::string_view option,
                 const Names& choices, const std::string& backend) {
  if (contains(choices, backend)) return;
  launch.assertion_error(kFp4Backend, fmt::format("KV4 {} expects {} to be one of {}, but got {}",
                                                  who, option, python_list(choices), backend));
}

void check_fp4_pair(Launch& launch, const Fp4Launch& fp4) {
  const bool mla = launch.mla();
  if (fp4.prefill != fp4.decode && fp4.prefill != "fa4") {
    if (fp4.mixed) return;
    launch.warn(kFp4Pair,
                fmt::format("Attention: Using KV4 with PREFILL = {} and DECODE = {}. Compatibility "
                            "issues are unlikely, but may occur in rare edge cases.",
                            fp4.prefill, fp4.decode));
    return;
  }
  if (fp4.prefill == "fa4") {
    const Names choices =
        mla ? Names{"flashinfer", "trtllm_mla"} : Names{"triton", "torch_native", "flex_attention"};
    return require_one(launch, mla ? "FA4 MLA" : "FA4 MHA", "decode_attention_backend", choices,
                       fp4.decode);
  }
  const Names choices =
      mla ? Names{"flashinfer", "trtllm_mla"}
          : Names{"triton", "torch_native", "flex_attention", std::string(kTrtllmMha)};
  require_one(launch, mla ? "MLA" : "MHA", "attention_backend", choices,
              launch.text("attention_backend"));
}

}  // namespace

void nvfp4_prefill_dequant(Launch& launch) {
  if (launch.text("kv_cache_dtype") != kNvfp4) {
    if (launch.text("prefill_kv_cache_dequant_dtype") == "auto") return;
    return launch.value_error(kNvfp4Dequant,
                              "--prefill-kv-cache-dequant-dtype applies only with "
                              "--kv-cache-dtype=nvfp4.");
  }
  const std::string dtype = requested_dequant(launch);
  if (launch.refused()) return;
  const std::string target = dtype == kNvfp4 ? std::string(kTrtllmMha) : "flashinfer";
  check_explicit(launch, dtype, target);
  if (launch.refused()) return;
  Declaration fields = {{"prefill_attention_backend", text_value(target)},
                        {"decode_attention_backend", text_value(kTrtllmMha)}};
  if (launch.text("prefill_kv_cache_dequant_dtype") == "auto") {
    fields.emplace_back("prefill_kv_cache_dequant_dtype", text_value(dtype));
  }
  launch.declare(kNvfp4Dequant, std::move(fields));
  launch.info(kNvfp4Dequant, fmt::format("NVFP4 prefill dequant dtype: {0}; prefill input: {0}; "
                                         "decode input: nvfp4.",
                                         dtype));
}

void fp4_compatibility(Launch& launch) {
  const std::string kv = launch.text("kv_cache_dtype");
  if (kv != kNvfp4 && kv != "fp4_mx_block16") return;
  const Platform& platform = launch.platform();
  if (!platform.cuda()) {
    return launch.refuse("resolve", "RuntimeError", kFp4Platform,
                         "KV4 is not tested on non-CUDA platforms.");
  }
  if (kv == kNvfp4 && !platform.sm100() && !platform.sm120()) {
    return launch.refuse("resolve", "RuntimeError", kNvfp4Device,
                         "--kv-cache-dtype=nvfp4 requires Blackwell SM100 or SM120. Use "
                         "--kv-cache-dtype=fp4_mx_block16 for the block-size-16 FP4 recipe.");
  }
  if (launch.flag("enable_unified_memory")) {
    return launch.value_error(kFp4Unified,
                              "FP4 KV cache does not yet support --enable-unified-memory: the "
                              "unified MHA pool does not allocate FP4 block scales or the prefill "
                              "dequant workspace.");
  }
  const Fp4Launch fp4 = describe_fp4(launch);
  if (fp4.native) {
    for (const auto& step : {check_native_algorithm, native_draft, native_features}) {
      step(launch, fp4);
      if (launch.refused()) return;
    }
  }
  check_fp4_pair(launch, fp4);
}

void mxfp8_compatibility(Launch& launch) {
  if (launch.text("kv_cache_dtype") != "mxfp8" || launch.platform().blackwell()) return;
  launch.value_error(kMxfp8Device,
                     "--kv-cache-dtype mxfp8 requires an SM100+ (Blackwell) GPU for the "
                     "block-scaled operands used by the FA4 MXFP8 attention path.");
}

void page_size_default(Launch& launch) {
  constexpr std::int64_t kVectorizedPage = 64;
  if (!launch.unset("page_size")) return;
  const std::string* layout = launch.variable_text("SGLANG_AITER_KV_CACHE_LAYOUT");
  const bool vectorized =
      launch.platform().hip() && layout != nullptr && to_lower(*layout) == "vectorized_5d";
  if (vectorized) {
    launch.info(kPageDefault,
                "Setting page_size=64 as default for SGLANG_AITER_KV_CACHE_LAYOUT=vectorized_5d.");
  }
  launch.declare(kPageDefault, "page_size", integer_value(vectorized ? kVectorizedPage : 1));
}

void prefill_only_kv_cache(Launch& launch) {
  if (!launch.flag("prefill_only_disable_kv_cache")) return;
  const std::string prefill = launch.prefill_backend();
  if (prefill == "fa3" || prefill == "fa4") return;
  launch.value_error(
      kPrefillOnlyBackend,
      fmt::format(
          "--prefill-only-disable-kv-cache currently requires the FA prefill backend "
          "(fa3/fa4), but got prefill backend {}. Other prefill-only workloads and backends "
          "may be supported in a future change.",
          python_repr(prefill)));
}

void cache_compatibility(Launch& launch) {
  if (launch.flag("enable_hierarchical_cache") && launch.flag("disable_radix_cache")) {
    return launch.value_error(kHierarchicalCache,
                              "The arguments enable-hierarchical-cache and disable-radix-cache are "
                              "mutually exclusive and cannot be used at the same time. Please use "
                              "only one of them.");
  }
  const json::Value& ratio = launch.arguments().value("swa_full_tokens_ratio");
  if (ratio.is_number() && (ratio.as_double() <= 0.0 || ratio.as_double() > 1.0)) {
    launch.value_error(kSwaRatio, "--swa-full-tokens-ratio should be in range (0, 1.0].");
  }
}

}  // namespace kernelpath::engines::sglang
