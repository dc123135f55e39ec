// MLA backends. Source: v1/attention/backends/mla/*.py, v1/attention/ops/flashmla.py,
// models/deepseek_v4/nvidia/flashinfer_sparse.py and its DeepSeek V4.1 copy.

#include "engines/python.h"
#include "engines/vllm/backend_rules.h"
#include "engines/vllm/flash_attn_version.h"
#include "engines/vllm/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>

namespace kernelpath::engines::vllm {
namespace {

constexpr std::int64_t kMissingNope = 1;  // what the engine takes for an absent qk_nope_head_dim
constexpr std::int64_t kLatentRank = 512;

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), text) != names.end();
}

bool is_one_of(std::int64_t value, std::initializer_list<std::int64_t> values) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

// Python's attribute error for a field that the rule reads without a default.
bool requires_field(std::optional<std::int64_t> value, std::string_view name, Verdict& verdict) {
  if (value) return true;
  verdict.fault_type = "AttributeError";
  verdict.fault_text = fmt::format("the model's config has no attribute '{}'", name);
  return false;
}

// Why FlashMLA's extensions cannot be used; empty if they can.
std::string_view flashmla_missing(const Machine& machine) {
  if (machine.platform != hardware::Platform::kCuda || !machine.packages.flashmla) {
    return "vllm._flashmla_C is not available, likely was not compiled due to insufficient nvcc "
           "version or a supported arch was not in the list of target arches to compile for.";
  }
  if (!machine.packages.flashmla_extension) {
    return "vllm._flashmla_extension_C is not available, likely was not compiled due to a build "
           "error.";
  }
  return {};
}

std::string_view flashmla_sparse_missing(const Machine& machine) {
  const std::string_view missing = flashmla_missing(machine);
  if (!missing.empty()) return missing;
  if (machine.family(9) || machine.family(10)) return {};
  return "FlashMLA Sparse is only supported on Hopper and Blackwell DC devices.";
}

// The rest of the FlashInfer sparse rule, once the cache type is accepted.
void check_flashinfer_sparse_model(const SelectorContext& context, const ModelFacts& model,
                                   Verdict& verdict) {
  std::int64_t nope = model.qk_nope_head_dim.value_or(kMissingNope);
  bool has_rope = true;
  if (context.profile.at_least(0, 33)) {
    if (!requires_field(model.qk_nope_head_dim, "qk_nope_head_dim", verdict) ||
        !requires_field(model.qk_rope_head_dim, "qk_rope_head_dim", verdict) ||
        !requires_field(model.kv_lora_rank, "kv_lora_rank", verdict)) {
      return;
    }
    nope = *model.qk_nope_head_dim;
    has_rope = *model.qk_rope_head_dim != 0;
  }
  if (!has_rope && (nope != 256 || model.kv_lora_rank != kLatentRank)) {
    verdict.reasons.push_back(fmt::format(
        "FlashInfer native no-rope MLA requires qk_nope_head_dim=256 and kv_lora_rank=512, but "
        "got qk_nope_head_dim={}, kv_lora_rank={}",
        nope, python_integer(model.kv_lora_rank)));
  } else if (has_rope && !is_one_of(nope, {128, 192})) {
    verdict.reasons.push_back(fmt::format(
        "FlashInfer MLA Sparse kernel requires qk_nope_head_dim in [128, 192], but got {}", nope));
  } else if (!model.index_topk) {
    verdict.reasons.emplace_back("FlashInfer MLA Sparse requires model with index_topk config");
  }
}

// FLASHMLA_SPARSE with a latent row without rope (since 0.33).
bool refuses_nope_row(const SelectorContext& context, const SelectorConfig& config,
                      Verdict& verdict) {
  const bool takes = is_one_of(config.kv_dtype, {"auto", "bfloat16", "float16", "fp8_ds_mla"});
  if (!takes || !context.machine.family(9)) {
    const hardware::Capability capability = context.machine.capability;
    verdict.reasons.push_back(fmt::format(
        "FLASHMLA_SPARSE supports head_size 512 only with bf16 or fp8_ds_mla kv-cache on SM90 "
        "(NoPE), got kv_cache_dtype={}, capability=DeviceCapability(major={}, minor={})",
        config.kv_dtype, capability.major, capability.minor));
    return true;
  }
  if (!context.settings.model || context.settings.model->qk_rope_head_dim == 0) return false;
  verdict.reasons.emplace_back(
      "FLASHMLA_SPARSE supports head_size 512 only for rope-free (NoPE) models");
  return true;
}

std::string fa4_head_count_reason(std::int64_t num_heads, std::int64_t dcp) {
  // With context parallelism the kernel sees the gathered heads; 128 of them are not validated.
  const std::string_view counts = dcp > 1 ? "(8, 16, 32, 64)" : "(8, 16, 32, 64, 128)";
  return fmt::format(
      "FA4 sparse MLA requires {} gathered query heads, got num_heads={} * dcp_size={}", counts,
      num_heads, dcp);
}

// The model's side of FLASH_ATTN_MLA_SPARSE_FA4; empty if it fits.
std::string fa4_sparse_model_reason(const ModelFacts& model, std::int64_t dcp) {
  if (!model.index_topk || *model.index_topk % 128 != 0) {
    return fmt::format("FA4 sparse MLA requires index_topk % 128 == 0, got {}",
                       python_integer(model.index_topk));
  }
  if (model.kv_lora_rank != kLatentRank || model.qk_rope_head_dim != 64) {
    return fmt::format(
        "FA4 sparse MLA requires (kv_lora_rank, qk_rope_head_dim) == (512, 64), got ({}, {})",
        python_integer(model.kv_lora_rank), python_integer(model.qk_rope_head_dim));
  }
  const std::int64_t gathered = model.num_heads * dcp;
  const bool fits = is_one_of(gathered, {8, 16, 32, 64}) || (dcp <= 1 && gathered == 128);
  return fits ? std::string() : fa4_head_count_reason(model.num_heads, dcp);
}

}  // namespace

void flash_attn_mla_combination(const SelectorContext& context, const BackendClass& /*backend*/,
                                const SelectorConfig& /*config*/, Verdict& verdict) {
  if (flash_attn_supports_mla(context.machine)) return;
  verdict.reasons.emplace_back("FlashAttention MLA not supported on this device");
}

void flash_attn_mla_sparse_combination(const SelectorContext& context,
                                       const BackendClass& /*backend*/,
                                       const SelectorConfig& config, Verdict& verdict) {
  const auto& model = context.settings.model;
  // Until 0.32 the engine looks at the top of the config, later at the text config.
  const bool has_topk = model && model->index_topk &&
                        (context.profile.at_least(0, 33) || model->index_topk_in_top_config);
  if (!is_one_of(config.kv_dtype, {"auto", "float16", "bfloat16"})) {
    verdict.reasons.emplace_back(
        "FlashAttention MLA Sparse currently supports only FP16/BF16 KV cache");
  } else if (!flash_attn_supports_mla(context.machine)) {
    verdict.reasons.emplace_back("FlashAttention MLA not supported on this device");
  } else if (model && context.settings.dcp > 1) {
    verdict.reasons.emplace_back("FlashAttention MLA Sparse does not support DCP for now");
  } else if (model && !has_topk) {
    verdict.reasons.emplace_back("FlashAttention MLA Sparse requires model with index_topk");
  }
}

void flash_attn_mla_sparse_fa4_combination(const SelectorContext& context,
                                           const BackendClass& backend,
                                           const SelectorConfig& config, Verdict& verdict) {
  if (!context.machine.packages.flashinfer_usable()) {
    verdict.reasons.emplace_back("FA4 sparse MLA runs its prefill batches on FlashInfer's kernel");
    return;
  }
  const std::string_view missing = flash_attn_4_missing(context.machine);
  if (!missing.empty()) {
    verdict.reasons.push_back(fmt::format("FA4 unavailable: {}", missing));
    return;
  }
  if (context.settings.model) {
    std::string reason = fa4_sparse_model_reason(*context.settings.model, context.settings.dcp);
    if (!reason.empty()) {
      verdict.reasons.push_back(std::move(reason));
      return;
    }
  }
  flashinfer_mla_sparse_combination(context, backend, config, verdict);
}

void flashinfer_mla_combination(const SelectorContext& context, const BackendClass& /*backend*/,
                                const SelectorConfig& /*config*/, Verdict& verdict) {
  if (!context.settings.model) return;
  const std::int64_t nope = context.settings.model->qk_nope_head_dim.value_or(kMissingNope);
  if (is_one_of(nope, {64, 128, 192})) return;
  verdict.reasons.push_back(fmt::format(
      "FlashInfer MLA kernel requires qk_nope_head_dim in [64, 128, 192], but got {}", nope));
}

void flashinfer_mla_sparse_combination(const SelectorContext& context, const BackendClass& backend,
                                       const SelectorConfig& config, Verdict& verdict) {
  const SelectorSettings& settings = context.settings;
  if (context.profile.at_least(0, 33) && settings.pcp > 1 && settings.dcp > 1) {
    verdict.reasons.push_back(fmt::format(
        "{} does not support combined PCP+DCP; use FLASHMLA_SPARSE, which gathers each DCP KV "
        "shard before running the rank-local PCP prefill queries",
        backend.reported_name));
    return;
  }
  if (config.kv_dtype == "fp8_ds_mla") {
    verdict.reasons.push_back(
        fmt::format("{} SM10 does not support fp8_ds_mla kv-cache dtype", backend.reported_name));
    return;
  }
  if (settings.model) check_flashinfer_sparse_model(context, *settings.model, verdict);
}

void flashinfer_mla_sparse_sm90_combination(const SelectorContext& context,
                                            const BackendClass& /*backend*/,
                                            const SelectorConfig& config, Verdict& verdict) {
  if (!context.machine.packages.flashinfer_sm90_mla) {
    verdict.reasons.emplace_back(
        "FLASHINFER_MLA_SPARSE_SM90 requires FlashInfer with SM90 MLA support (ckv_scale_arr in "
        "BatchMLAPagedAttentionWrapper.run, FlashInfer >= 0.6.18)");
    return;
  }
  if (!config.use_sparse) {
    verdict.reasons.emplace_back("FLASHINFER_MLA_SPARSE_SM90 requires sparse MLA");
    return;
  }
  if (!context.settings.model) return;
  const ModelFacts& model = *context.settings.model;
  if (!requires_field(model.kv_lora_rank, "kv_lora_rank", verdict)) return;
  if (*model.kv_lora_rank != kLatentRank) {
    verdict.reasons.emplace_back("FLASHINFER_MLA_SPARSE_SM90 requires kv_lora_rank=512");
    return;
  }
  if (!requires_field(model.qk_rope_head_dim, "qk_rope_head_dim", verdict)) return;
  if (!is_one_of(*model.qk_rope_head_dim, {0, 64})) {
    verdict.reasons.emplace_back("FLASHINFER_MLA_SPARSE_SM90 requires qk_rope_head_dim in (0, 64)");
  }
}

void flashinfer_mla_sparse_sm120_combination(const SelectorContext& context,
                                             const BackendClass& /*backend*/,
                                             const SelectorConfig& config, Verdict& verdict) {
  const Machine& machine = context.machine;
  const auto& model = context.settings.model;
  if (!machine.packages.flashinfer_sparse_sm120) {
    verdict.reasons.emplace_back(
        "FLASHINFER_MLA_SPARSE_SM120 requires FlashInfer's sparse MLA decode API");
  } else if (config.dtype != "bfloat16") {
    verdict.reasons.emplace_back("dtype not supported");
  } else if (!is_one_of(config.kv_dtype, {"auto", "fp8", "fp8_e4m3", "fp8_ds_mla"})) {
    verdict.reasons.emplace_back("kv_cache_dtype not supported");
  } else if (model && !model->index_topk) {
    verdict.reasons.emplace_back(
        "FLASHINFER_MLA_SPARSE_SM120 requires a model with index_topk config");
  } else if (model && *model->index_topk != 2048) {
    verdict.reasons.push_back(fmt::format(
        "FLASHINFER_MLA_SPARSE_SM120 requires index_topk=2048; got {}", *model->index_topk));
  }
}

void flashmla_combination(const SelectorContext& context, const BackendClass& /*backend*/,
                          const SelectorConfig& config, Verdict& verdict) {
  std::string_view missing = flashmla_missing(context.machine);
  if (config.use_sparse) {
    missing = flashmla_sparse_missing(context.machine);
  } else if (missing.empty() && !context.machine.family(9)) {
    missing = "FlashMLA Dense is only supported on Hopper devices.";
  }
  if (!missing.empty()) verdict.reasons.emplace_back(missing);
}

void flashmla_sparse_combination(const SelectorContext& context, const BackendClass& /*backend*/,
                                 const SelectorConfig& config, Verdict& verdict) {
  if (config.head_size == kLatentRank && refuses_nope_row(context, config, verdict)) return;
  if (config.kv_dtype == "nvfp4_ds_mla" && !context.machine.family(10)) {
    verdict.reasons.emplace_back(
        "FLASHMLA_SPARSE only supports the nvfp4_ds_mla kv-cache dtype on SM100 (Blackwell)");
  }
}

void flashmla_mega_combination(const SelectorContext& context, const BackendClass& /*backend*/,
                               const SelectorConfig& /*config*/, Verdict& verdict) {
  const std::string_view missing = flashmla_sparse_missing(context.machine);
  if (!missing.empty()) {
    verdict.reasons.emplace_back(missing);
  } else if (!context.machine.family(10)) {
    verdict.reasons.emplace_back("FlashMLA mega attention requires sm_10x GPUs.");
  } else if (!context.machine.packages.flashmla_mega) {
    verdict.reasons.emplace_back("vllm._flashmla_C was built without the mega attention ops.");
  }
}

void tokenspeed_mla_combination(const SelectorContext& context, const BackendClass& /*backend*/,
                                const SelectorConfig& /*config*/, Verdict& verdict) {
  if (!context.machine.packages.tokenspeed_mla) {
    verdict.reasons.emplace_back(
        "tokenspeed_mla package is not installed. Install it with: `uv pip install "
        "tokenspeed-mla`");
    return;
  }
  if (!context.settings.model) return;
  const ModelFacts& model = *context.settings.model;
  const std::int64_t nope = model.qk_nope_head_dim.value_or(0);
  const std::int64_t rope = model.qk_rope_head_dim.value_or(0);
  const std::int64_t value = model.v_head_dim.value_or(0);
  if (nope == 128 && rope == 64 && value == 128) return;
  verdict.reasons.push_back(
      fmt::format("tokenspeed_mla requires DeepSeek R1 MLA dimensions (qk_nope_head_dim=128, "
                  "qk_rope_head_dim=64, v_head_dim=128), got ({}, {}, {})",
                  nope, rope, value));
}

void deepseek_v4_flashinfer_combination(const SelectorContext& context,
                                        const BackendClass& /*backend*/,
                                        const SelectorConfig& config, Verdict& verdict) {
  const Machine& machine = context.machine;
  const bool fp8 = is_one_of(config.kv_dtype, {"fp8", "fp8_e4m3"});
  if (machine.family(10)) {
    if (config.kv_dtype == "fp8_ds_mla") {
      verdict.reasons.emplace_back(
          "FLASHINFER_MLA_SPARSE_DSV4 SM10x uses the plain per-tensor FP8 KV layout, not "
          "fp8_ds_mla");
    } else if (!fp8 && !is_one_of(config.kv_dtype, {"auto", "bfloat16"})) {
      verdict.reasons.emplace_back("kv_cache_dtype not supported");
    }
  } else if (machine.family(12)) {
    if (!fp8 && config.kv_dtype != "fp8_ds_mla") {
      verdict.reasons.emplace_back("kv_cache_dtype not supported");
    } else if (!machine.packages.flashinfer_sparse_sm120) {
      verdict.reasons.emplace_back(
          "FLASHINFER_MLA_SPARSE_DSV4 SM120 requires FlashInfer's sparse MLA decode API");
    }
  } else {
    verdict.reasons.emplace_back("FLASHINFER_MLA_SPARSE_DSV4 requires SM10x or SM12x");
  }
}

std::vector<BlockSize> flashmla_sparse_block_sizes(const SelectorContext& /*context*/,
                                                   const BackendClass& /*backend*/) {
  // A layer with a quantized cache on data-centre Blackwell gets exactly 64; selection does not
  // know the layer's cache yet.
  return {{.size = 64, .multiple = true}};
}

std::vector<BlockSize> deepseek_v41_block_sizes(const SelectorContext& context,
                                                const BackendClass& /*backend*/) {
  return {{.size = context.machine.family(9) ? 64 : 128}};
}

}  // namespace kernelpath::engines::vllm
