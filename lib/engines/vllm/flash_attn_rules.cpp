// FLASH_ATTN. Source: v1/attention/backends/flash_attn.py; the child of a composite:
// triton_flash_attn.py; STEP5_DSA: models/step5/nvidia/sparse_attention.py.

#include "engines/vllm/backend_rules.h"
#include "engines/vllm/flash_attn_version.h"
#include "engines/vllm/profile.h"

#include <algorithm>

namespace kernelpath::engines::vllm {
namespace {

constexpr hardware::Capability kHopper = {.major = 9, .minor = 0};
constexpr std::int64_t kLargestPlainHead = 256;
constexpr std::int64_t kLargestFa4Head = 512;
constexpr std::int64_t kSm90Fp8PageSize = 64;  // the token tile of FA4's dequantizing kernel

bool is_fp8(std::string_view kv_dtype) { return kv_dtype == "fp8" || kv_dtype == "fp8_e4m3"; }

// What the layer asks when it looks at its own head size and block size.
FlashAttnQuestion layer_question(const SelectorConfig& config) {
  return {.head_size = config.head_size,
          .has_sinks = config.has_sink,
          .kv_block_size = config.block_size,
          .supports_hd256 = true};
}

// The page that a special kernel of FlashAttention 4 insists on, for the model as a whole.
std::optional<std::int64_t> special_page_size(const SelectorContext& context) {
  if (!context.profile.at_least(0, 33) || !context.settings.model) return std::nullopt;
  const std::int64_t head_size = context.settings.model->head_size;
  if (context.machine.family(9) && is_fp8(context.settings.run_kv_dtype) && head_size == 512 &&
      flash_attn_version(context, {.head_size = head_size}) == 4) {
    return kSm90Fp8PageSize;
  }
  if (uses_hd256_kernel(context.machine, head_size, std::nullopt) &&
      flash_attn_version(context, {.head_size = head_size, .supports_hd256 = true}) == 4) {
    return kHd256PageSize;
  }
  return std::nullopt;
}

// The part of the combination rule that came with quantized caches on FlashAttention 4.
bool refuses_quantized_cache(const SelectorContext& context, const SelectorConfig& config,
                             Verdict& verdict) {
  if (!context.profile.at_least(0, 33) || !context.profile.is_quantized(config.kv_dtype)) {
    return false;
  }
  if (config.use_mm_prefix && context.machine.capability == kHopper) {
    verdict.reasons.emplace_back("SM90 FP8 KV with mm_prefix requires Triton");
    return true;
  }
  FlashAttnQuestion question = layer_question(config);
  question.head_size_v = config.head_size;
  if (flash_attn_takes_kv_dtype(context, config.kv_dtype, question)) return false;
  verdict.reasons.emplace_back(
      "FP8 KV cache requires FA3 on SM90, FA4 with head_size=512 on SM90, or FA4 on SM100");
  return true;
}

}  // namespace

bool flash_attn_head_size(const SelectorContext& context, const BackendClass& /*backend*/,
                          std::int64_t head_size) {
  if (head_size % 8 != 0) return false;
  if (head_size <= kLargestPlainHead) return true;
  return flash_attn_supported(context.machine, 4) && head_size <= kLargestFa4Head;
}

bool flash_attn_kv_dtype(const SelectorContext& context, const BackendClass& backend,
                         std::string_view kv_dtype) {
  if (context.profile.at_least(0, 33)) {
    const auto& listed = backend.kv_dtypes_listed;
    if (std::find(listed.begin(), listed.end(), kv_dtype) == listed.end()) return false;
    return !context.profile.is_quantized(kv_dtype) || flash_attn_takes_kv_dtype(context, kv_dtype);
  }
  if (is_fp8(kv_dtype)) return flash_attn_version(context) == 3 && context.machine.family(9);
  return kv_dtype == "auto" || kv_dtype == "float16" || kv_dtype == "bfloat16";
}

bool flash_attn_sink(const SelectorContext& context, const BackendClass& /*backend*/) {
  return flash_attn_version(context).value_or(0) >= 3;
}

bool flash_attn_mm_prefix(const SelectorContext& context, const BackendClass& /*backend*/) {
  return flash_attn_supported(context.machine, 4);
}

bool flash_attn_per_head_scales(const SelectorContext& context, const BackendClass& /*backend*/) {
  return flash_attn_version(context).value_or(0) >= 3;
}

std::vector<BlockSize> flash_attn_block_sizes(const SelectorContext& context,
                                              const BackendClass& /*backend*/) {
  if (const auto page = special_page_size(context)) return {{.size = *page}};
  return {{.size = 16, .multiple = true}};
}

std::int64_t flash_attn_preferred_block_size(const SelectorContext& context,
                                             const BackendClass& /*backend*/,
                                             std::int64_t default_size) {
  if (const auto page = special_page_size(context)) return std::max(default_size, *page);
  return default_size % 16 == 0 ? default_size : 16;
}

void flash_attn_combination(const SelectorContext& context, const BackendClass& /*backend*/,
                            const SelectorConfig& config, Verdict& verdict) {
  if (config.has_sink && context.machine.capability < kHopper) {
    verdict.reasons.emplace_back("sink not supported on compute capability < 9.0");
    return;
  }
  if (refuses_quantized_cache(context, config, verdict)) return;
  if (config.use_mm_prefix && flash_attn_version(context, layer_question(config)) != 4) {
    verdict.reasons.emplace_back(
        "mm_prefix (PrefixLM bidirectional attention) requires FlashAttention v4, which does not "
        "resolve for this head_size");
  }
}

bool composite_child_capability(const SelectorContext& context, const BackendClass& /*backend*/) {
  return context.machine.family(9);
}

void composite_child_combination(const SelectorContext& context, const BackendClass& backend,
                                 const SelectorConfig& config, Verdict& verdict) {
  flash_attn_combination(context, backend, config, verdict);
  if (!verdict.admitted()) return;
  if (flash_attn_version(context, layer_question(config)).value_or(0) < 3) {
    verdict.reasons.emplace_back("causal route requires FlashAttention v3 or v4");
  }
}

void step5_combination(const SelectorContext& context, const BackendClass& backend,
                       const SelectorConfig& config, Verdict& verdict) {
  // Its layers keep their own cache, so FlashAttention's limits on quantized ones do not count.
  SelectorConfig asked = config;
  asked.kv_dtype = "auto";
  flash_attn_combination(context, backend, asked, verdict);
}

}  // namespace kernelpath::engines::vllm
