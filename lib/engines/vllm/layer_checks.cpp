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
constexpr hardware::Capability kHopper = {.major = 9, .minor = 0};

RunError refusal(std::string_view stage, std::string_view type, std::string text,
                 std::string_view rule) {
  return {.stage = std::string(stage),
          .type = std::string(type),
          .text = std::move(text),
          .rule = std::string(rule)};
}

std::string implementation_name(const BuiltLayer& layer, const ImplementationInfo& info) {
  return layer.implementation.empty() ? info.class_name : layer.implementation;
}

// What one layer's implementation lacks under context parallelism.
std::optional<RunError> check_layer(const SelectorContext& context, const RunConfig& run,
                                    const BuiltLayer& layer, const BackendClass& backend) {
  const bool later = context.profile.at_least(0, 33);
  if (later && run.pcp > 1 && !asks(context, backend, Question::kPcp)) {
    return refusal("dcp", "AssertionError",
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
    return refusal(
        "dcp", "AssertionError",
        fmt::format("MTP with cp_kv_cache_interleave_size > 1 is not supported in {}.", name),
        "VLLM-DCP-INTERLEAVE-SPECULATION");
  }
  if (run.dcp > 1 && !info.can_return_lse_for_decode.value_or(false)) {
    return refusal(
        "dcp", "AssertionError",
        fmt::format("Decode Context Parallelism (DCP) requires attention implementations to "
                    "return the softmax LSE during decode, but {} does not. Try a different "
                    "backend by setting --attention-backend or disable DCP.",
                    name),
        "VLLM-DCP-NO-LSE");
  }
  if (!later && run.pcp > 1 && !info.supports_pcp.value_or(false)) {
    return refusal("dcp", "AssertionError",
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
bool varlen_with_dcp(const BackendClass& backend) {
  const bool varlen = backend.builder && backend.builder->query_len_support == "VARLEN";
  return varlen || backend.reported_name == "FLASHINFER_MLA_SPARSE";
}

}  // namespace

std::optional<RunError> check_context_parallel(const SelectorContext& context, const RunConfig& run,
                                               std::span<const BuiltLayer> layers) {
  if (run.dcp * run.pcp <= 1) return std::nullopt;
  for (const BuiltLayer& layer : layers) {
    if (layer.backend == nullptr || layer.role == LayerRole::kIndexer) continue;
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
    const bool flashinfer = layer.reported_backend == kFlashInfer;
    if (!later && flashinfer && context.machine.capability == kHopper && layer.window) {
      return refusal("metadata builder", "NotImplementedError",
                     "FlashInfer backend on SM90 currently crashes with sliding-window attention "
                     "layers. Use the default attention backend.",
                     "VLLM-BUILDER-FLASHINFER-WINDOW");
    }
    if (!later && layer.role == LayerRole::kIndexer && run.dcp > 1 && run.cp_interleave > 1) {
      return refusal("metadata builder", "NotImplementedError",
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
  if (!threshold && !speculates) return std::nullopt;
  std::int64_t longest = threshold.value_or(1);
  if (speculates && run.speculative_tokens > 0) {
    longest = std::max(longest, 1 + run.speculative_tokens);
  }
  if (run.dcp > 1 && !varlen_with_dcp(backend)) longest = 1;
  return longest;
}

}  // namespace kernelpath::engines::vllm
