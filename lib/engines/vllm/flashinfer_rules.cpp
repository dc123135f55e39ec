// FLASHINFER and B12X. Source: v1/attention/backends/flashinfer.py, b12x.py.

#include "engines/vllm/backend_rules.h"
#include "engines/vllm/flashinfer_support.h"
#include "engines/vllm/profile.h"

#include <algorithm>

namespace kernelpath::engines::vllm {
namespace {

bool trtllm_in_both_phases(const SelectorContext& context) {
  return supports_trtllm(context, AttentionPhase::kPrefill) &&
         supports_trtllm(context, AttentionPhase::kDecode);
}

// Generations whose FlashAttention 2 path reads nvfp4 caches (since 0.33).
bool nvfp4_on_fa2(const SelectorContext& context) {
  const Machine& machine = context.machine;
  return context.profile.at_least(0, 33) &&
         (machine.family(8) || machine.family(9) || machine.family(12));
}

bool is_nvfp4(std::string_view kv_dtype) { return kv_dtype.starts_with("nvfp4"); }

// Pages of 128 and more run on TRTLLM-gen's dynamic kernel only.
bool takes_large_pages(const SelectorContext& context) {
  if (!context.settings.model || !context.machine.family(10)) return false;
  const ModelFacts& model = *context.settings.model;
  return model.num_kv_heads > 0 && model.num_heads / model.num_kv_heads > 1 &&
         can_use_trtllm(context, model.num_heads, model.num_kv_heads, AttentionPhase::kDecode);
}

}  // namespace

bool flashinfer_kv_dtype(const SelectorContext& context, const BackendClass& backend,
                         std::string_view kv_dtype) {
  const bool special = context.profile.at_least(0, 33) ? is_nvfp4(kv_dtype) : kv_dtype == "nvfp4";
  if (special) {
    // The writer of the FA2 path has no search for scales.
    if (nvfp4_on_fa2(context)) return kv_dtype == "nvfp4";
    return context.machine.family(10) && trtllm_in_both_phases(context);
  }
  const auto& listed = backend.kv_dtypes_listed;
  return std::find(listed.begin(), listed.end(), kv_dtype) != listed.end();
}

bool flashinfer_sink(const SelectorContext& context, const BackendClass& /*backend*/) {
  if (context.settings.use_trtllm_attention == false) return false;
  const Machine& machine = context.machine;
  const bool xqa =
      machine.capability == hardware::Capability{.major = 9, .minor = 0} || machine.family(12);
  if (context.profile.at_least(0, 33) && xqa) {
    return supports_trtllm(context, AttentionPhase::kDecode);
  }
  return machine.family(10) && trtllm_in_both_phases(context);
}

bool flashinfer_query_lengths_mismatch(const SelectorContext& context,
                                       const BackendClass& /*backend*/) {
  if (!context.machine.family(10)) return false;
  if (!context.settings.model) return true;
  const ModelFacts& model = *context.settings.model;
  return context.settings.dcp == 1 &&
         can_use_trtllm(context, model.num_heads, model.num_kv_heads, AttentionPhase::kDecode);
}

std::vector<BlockSize> flashinfer_block_sizes(const SelectorContext& context,
                                              const BackendClass& /*backend*/) {
  std::vector<BlockSize> sizes = {{.size = 16}, {.size = 32}, {.size = 64}};
  if (!takes_large_pages(context)) return sizes;
  for (const std::int64_t size : {128, 256, 512, 1024}) sizes.push_back({.size = size});
  return sizes;
}

std::optional<std::vector<std::string>> flashinfer_layouts(const SelectorContext& context,
                                                           const BackendClass& /*backend*/) {
  if (!context.machine.family(10)) return std::nullopt;
  if (!context.profile.at_least(0, 33)) return std::vector<std::string>{"HND"};
  return std::vector<std::string>{"LBHNC", "BLHNC"};
}

void flashinfer_combination(const SelectorContext& context, const BackendClass& /*backend*/,
                            const SelectorConfig& config, Verdict& verdict) {
  if (!is_nvfp4(config.kv_dtype) || !nvfp4_on_fa2(context)) return;
  if (config.head_size == 64) {
    verdict.reasons.emplace_back("fa2 prefill misreads an NVFP4 KV cache at head_size 64");
  } else if (config.has_sink) {
    verdict.reasons.emplace_back("the sink prefill wrapper cannot read an NVFP4 KV cache");
  }
}

void b12x_combination(const SelectorContext& context, const BackendClass& /*backend*/,
                      const SelectorConfig& config, Verdict& verdict) {
  const bool fp8 = config.kv_dtype == "fp8" || config.kv_dtype == "fp8_e4m3";
  if (config.dtype != "bfloat16") {
    verdict.reasons.emplace_back("b12x currently requires bfloat16 queries");
  } else if (config.kv_dtype == "float16") {
    verdict.reasons.emplace_back("b12x does not support float16 KV cache");
  } else if (context.profile.is_quantized(config.kv_dtype) && !fp8) {
    verdict.reasons.emplace_back(
        "b12x currently supports only fp8/fp8_e4m3 quantized KV cache dtypes");
  } else if (!context.machine.packages.b12x) {
    verdict.reasons.emplace_back("Install the b12x backend with `pip install vllm[b12x]`");
  } else if (!context.machine.family(12)) {
    verdict.reasons.emplace_back("b12x paged attention is not supported on the current device");
  }
}

}  // namespace kernelpath::engines::vllm
