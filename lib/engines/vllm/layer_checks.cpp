#include "engines/vllm/layer_checks.h"

#include "engines/vllm/flashinfer_support.h"
#include "engines/vllm/layer_spec.h"
#include "engines/vllm/profile.h"
#include "engines/vllm/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kernelpath::engines::vllm {
namespace {

constexpr std::string_view kFlashInfer = "FLASHINFER";
constexpr std::string_view kFlashMlaSparse = "FLASHMLA_SPARSE";
constexpr std::string_view kHpc = "HPC_ATTN";
constexpr std::int64_t kHpcTokens = 3;
constexpr hardware::Capability kHopper = {.major = 9, .minor = 0};

std::string implementation_name(const BuiltLayer& layer, const ImplementationInfo& info) {
  return layer.implementation.empty() ? info.class_name : layer.implementation;
}

// What one layer's implementation lacks under context parallelism.
std::optional<RunError> check_layer(const SelectorContext& context, const RunConfig& run,
                                    const BuiltLayer& layer, const BackendClass& backend) {
  const bool later = context.profile.at_least(0, 33);
  if (later && run.pcp > 1 && !asks(context, backend, Question::kPcp)) {
    return run_error("dcp", "AssertionError",
                     fmt::format("PCP requires attention backend support, but {} does not support "
                                 "PCP.",
                                 backend.reported_name),
                     "VLLM-PCP-UNSUPPORTED");
  }
  if (!backend.implementation) return std::nullopt;
  const ImplementationInfo& info = *backend.implementation;
  const std::string name = implementation_name(layer, info);
  const bool speculates = run.speculative_tokens > 0 || !run.speculative_method.empty();
  if (speculates && run.cp_interleave > 1 &&
      !info.supports_interleave_with_speculation.value_or(false)) {
    return run_error(
        "dcp", "AssertionError",
        fmt::format("MTP with cp_kv_cache_interleave_size > 1 is not supported in {}.", name),
        "VLLM-DCP-INTERLEAVE-SPECULATION");
  }
  if (run.dcp > 1 && !info.can_return_lse_for_decode.value_or(false)) {
    return run_error(
        "dcp", "AssertionError",
        fmt::format("Decode Context Parallelism (DCP) requires attention implementations to "
                    "return the softmax LSE during decode, but {} does not. Try a different "
                    "backend by setting --attention-backend or disable DCP.",
                    name),
        "VLLM-DCP-NO-LSE");
  }
  if (!later && run.pcp > 1 && !info.supports_pcp.value_or(false)) {
    return run_error("dcp", "AssertionError",
                     fmt::format("PCP requires attention impls' support, but the impl {} does not "
                                 "support PCP.",
                                 name),
                     "VLLM-PCP-UNSUPPORTED");
  }
  return std::nullopt;
}

// The builder of a backend takes queries of several tokens as decodes.
bool speculation_as_decode(const SelectorContext& context, const BackendClass& backend) {
  if (backend.reported_name == kFlashInfer) {
    if (!context.settings.model) return false;
    const ModelFacts& model = *context.settings.model;
    const bool later = context.profile.at_least(0, 33);
    if (later && context.machine.capability < kHopper) return true;
    const bool generation = later || context.machine.family(10);
    return generation &&
           can_use_trtllm(context, model.num_heads, model.num_kv_heads, AttentionPhase::kDecode);
  }
  if (backend.builder && !backend.builder->query_len_support.empty()) {
    return backend.builder->query_len_support != "SINGLE_ONLY";
  }
  const bool sparse = asks(context, backend, Question::kSparse);
  return sparse || backend.reported_name == "HPC_ATTN";
}

// Backends whose decode path takes queries of any length while context is parallel.
bool varlen_with_dcp(const SelectorContext& context, const RunConfig& run,
                     const BackendClass& backend) {
  const bool varlen = backend.builder && backend.builder->query_len_support == "VARLEN";
  const std::string& name = backend.reported_name;
  const bool later = context.profile.at_least(0, 33);
  return varlen || name == "FLASHINFER_MLA_SPARSE" ||
         (later && name == "FLASH_ATTN_MLA_SPARSE_FA4") ||
         (later && name == kFlashMlaSparse && run.cp_interleave == 1);
}

// Since 0.33 sparse latent attention decodes queries up to a length by the query heads of a rank:
// where attention over single entries beats attention over unpacked ones. Nothing: another rule.
// Source:
// v1/attention/backends/mla/{flashmla_sparse,flashinfer_mla_sparse,flashattn_mla_sparse}.py.
std::optional<std::int64_t> threshold_by_heads(const SelectorContext& context,
                                               const BackendClass& backend) {
  const std::string& name = backend.reported_name;
  if (!context.profile.at_least(0, 33) || !context.settings.model) return std::nullopt;
  const bool flash_mla = name == kFlashMlaSparse;
  const bool narrow = name == "FLASH_ATTN_MLA_SPARSE" || (flash_mla && !context.machine.family(10));
  const bool wide = name.starts_with("FLASHINFER_MLA_SPARSE") ||
                    name == "FLASH_ATTN_MLA_SPARSE_FA4" || (flash_mla && !narrow);
  if ((!narrow && !wide) || name.ends_with("_DSV4")) return std::nullopt;
  switch (context.settings.model->num_heads) {
    case 8:
      return narrow ? 256 : 128;
    case 16:
    case 32:
      return 128;
    case 64:
      return 256;
    default:
      return narrow ? 256 : 1024;
  }
}

}  // namespace

std::optional<RunError> check_context_parallel(const SelectorContext& context, const RunConfig& run,
                                               std::span<const BuiltLayer> layers) {
  if (run.dcp * run.pcp <= 1) return std::nullopt;
  for (const BuiltLayer& layer : layers) {
    if (layer.backend == nullptr || layer.role == LayerRole::kIndexer) continue;
    // Since 0.33 the second runner checks the target's layers only.
    if (layer.draft && run.v2_runner && context.profile.at_least(0, 33)) continue;
    if (std::optional<RunError> error = check_layer(context, run, layer, *layer.backend)) {
      return error;
    }
  }
  return std::nullopt;
}

std::optional<RunError> check_metadata_builders(const SelectorContext& context,
                                                const RunConfig& run,
                                                std::span<const BuiltLayer> layers) {
  const bool later = context.profile.at_least(0, 33);
  for (const BuiltLayer& layer : layers) {
    if (layer.reported_backend == kHpc && run.speculative_tokens > kHpcTokens) {
      return run_error("metadata builder", "ValueError",
                       fmt::format("HPC attention only supports up to {} speculative tokens (mtp ∈ "
                                   "{{0, 1, 2, 3}}), got num_speculative_tokens={}. Please reduce "
                                   "num_speculative_tokens or use a different attention backend.",
                                   kHpcTokens, run.speculative_tokens),
                       "VLLM-BUILDER-HPC-TOKENS");
    }
    const bool flashinfer = layer.reported_backend == kFlashInfer;
    if (!later && flashinfer && context.machine.capability == kHopper && layer.window) {
      return run_error("metadata builder", "NotImplementedError",
                       "FlashInfer backend on SM90 currently crashes with sliding-window attention "
                       "layers. Use the default attention backend.",
                       "VLLM-BUILDER-FLASHINFER-WINDOW");
    }
    if (!later && layer.role == LayerRole::kIndexer && run.dcp > 1 && run.cp_interleave > 1) {
      return run_error("metadata builder", "NotImplementedError",
                       fmt::format("DCP sparse indexer currently supports only "
                                   "cp_kv_cache_interleave_size=1 (got {}).",
                                   run.cp_interleave),
                       "VLLM-BUILDER-INDEXER-INTERLEAVE");
    }
  }
  return std::nullopt;
}

std::optional<std::int64_t> decode_query_threshold(const SelectorContext& context,
                                                   const RunConfig& run,
                                                   const BackendClass& backend) {
  const bool speculates = speculation_as_decode(context, backend);
  std::optional<std::int64_t> threshold;
  if (backend.builder) threshold = backend.builder->reorder_batch_threshold;
  if (const auto by_heads = threshold_by_heads(context, backend)) threshold = by_heads;
  if (!threshold && !speculates) return std::nullopt;
  std::int64_t longest = threshold.value_or(1);
  if (speculates && run.speculative_tokens > 0) {
    // All tokens at once come with as many places to fill; since 0.33 on the first runner only.
    const bool twice = run.parallel_drafting && !(context.profile.at_least(0, 33) && run.v2_runner);
    longest = std::max(longest, 1 + (twice ? 2 : 1) * run.speculative_tokens);
  }
  if (run.dcp > 1 && !varlen_with_dcp(context, run, backend)) longest = 1;
  return longest;
}

}  // namespace kernelpath::engines::vllm
