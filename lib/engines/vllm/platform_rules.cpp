// Backends for AMD GPUs and CPUs. Source: v1/attention/backends/rocm_*.py, cpu_attn.py,
// mla/rocm_aiter_mla*.py, models/minimax_m3/common/sparse_attention.py, platforms/rocm.py.

#include "engines/vllm/backend_rules.h"
#include "engines/vllm/profile.h"

#include <algorithm>

namespace kernelpath::engines::vllm {
namespace {

using Layouts = std::optional<std::vector<std::string>>;

constexpr int kMi300 = 3;  // CDNA generations
constexpr int kMi350 = 4;

bool is_rocm(const Machine& machine) { return machine.platform == hardware::Platform::kRocm; }

bool is_mi300_series(const Machine& machine) {
  return is_rocm(machine) && (machine.cdna == kMi300 || machine.cdna == kMi350);
}

// AITER keeps its cache shuffled: K and V as two planes (VLLM_ROCM_SHUFFLE_KV_CACHE_LAYOUT).
bool shuffles_cache(const Machine& machine) { return machine.aiter_shuffled_cache; }

}  // namespace

bool aiter_flash_attn_capability(const SelectorContext& context, const BackendClass& /*backend*/) {
  const Machine& machine = context.machine;
  if (!context.profile.at_least(0, 33)) return is_mi300_series(machine);
  return is_rocm(machine) && machine.cdna >= kMi300;
}

bool octave_capability(const SelectorContext& context, const BackendClass& /*backend*/) {
  return is_rocm(context.machine) && (context.machine.rdna == 3 || context.machine.cdna == kMi300);
}

bool aiter_mla_sparse_sink(const SelectorContext& context, const BackendClass& /*backend*/) {
  return is_mi300_series(context.machine);
}

bool aiter_mla_non_causal(const SelectorContext& context, const BackendClass& /*backend*/) {
  const Machine& machine = context.machine;
  return is_rocm(machine) && machine.packages.aiter && machine.cdna == kMi350;
}

bool cpu_kv_dtype(const SelectorContext& context, const BackendClass& backend,
                  std::string_view kv_dtype) {
  if (kv_dtype == "auto" || kv_dtype == "bfloat16" || kv_dtype == "float16") return true;
  const auto& listed = backend.kv_dtypes_listed;
  return std::find(listed.begin(), listed.end(), kv_dtype) != listed.end() &&
         context.machine.packages.cpu_fp8;
}

void rocm_segmented_combination(const SelectorContext& context, const BackendClass& /*backend*/,
                                const SelectorConfig& config, Verdict& verdict) {
  const Machine& machine = context.machine;
  const bool fp8 = config.kv_dtype == "fp8" || config.kv_dtype == "fp8_e4m3";
  if (!is_rocm(machine) || machine.rdna == 0) {
    verdict.reasons.emplace_back("ROCM_SEGMENTED_ATTN requires AMD RDNA GPUs on ROCm");
  } else if (fp8 && machine.rdna != 4) {
    verdict.reasons.emplace_back("FP8 segmented attention requires gfx12");
  }
}

void aiter_mla_validation(const SelectorContext& /*context*/, const BackendClass& /*backend*/,
                          const SelectorConfig& config, Verdict& verdict) {
  const bool half = config.kv_dtype == "auto" || config.kv_dtype == "float16";
  if (config.use_non_causal && config.dtype == "float16" && half) {
    verdict.reasons.emplace_back("non-causal fp16 MLA decode not supported");
  }
}

Layouts aiter_flash_attn_layouts(const SelectorContext& context, const BackendClass& /*backend*/) {
  if (shuffles_cache(context.machine)) return std::vector<std::string>{"LHBNC", "LBHNC"};
  return std::vector<std::string>{"LBHNC", "LHBNC"};
}

Layouts aiter_unified_layouts(const SelectorContext& context, const BackendClass& /*backend*/) {
  // Connectors assume contiguous blocks.
  if (context.settings.kv_connector) return std::vector<std::string>{"LBHNC"};
  return std::vector<std::string>{"LBHNC", "LHBNC"};
}

Layouts minimax_m3_layouts(const SelectorContext& context, const BackendClass& /*backend*/) {
  if (!context.machine.aiter_enabled || !shuffles_cache(context.machine)) return std::nullopt;
  return std::vector<std::string>{"LBHNC", "LHBNC"};
}

Layouts octave_layouts(const SelectorContext& context, const BackendClass& /*backend*/) {
  if (is_rocm(context.machine) && context.machine.cdna == kMi300) {
    return std::vector<std::string>{"LBHNC"};
  }
  return std::vector<std::string>{"LBHNC", "LBNHC"};
}

}  // namespace kernelpath::engines::vllm
