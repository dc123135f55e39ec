#include "engines/vllm/cudagraph.h"
#include "engines/vllm/flash_attn_version.h"
#include "engines/vllm/flashinfer_support.h"
#include "engines/vllm/profile.h"

#include <algorithm>
#include <array>

namespace kernelpath::engines::vllm {
namespace {

constexpr hardware::Capability kHopper = {.major = 9, .minor = 0};
constexpr std::int64_t kXqaLeastHead = 16;
constexpr std::int64_t kXqaMostHead = 256;

using LevelRule = GraphLevel (*)(const SelectorContext&, const BackendClass&, const GraphQuestion&);

constexpr auto kLevelNames = std::to_array<std::string_view>(
    {"NEVER", "UNIFORM_SINGLE_TOKEN_DECODE", "UNIFORM_BATCH", "ALWAYS"});

GraphLevel level_named(std::string_view name) {
  const auto* found = std::ranges::find(kLevelNames, name);
  return found == kLevelNames.end() ? GraphLevel::kNever
                                    : static_cast<GraphLevel>(found - kLevelNames.begin());
}

GraphLevel stated_level(const SelectorContext& /*context*/, const BackendClass& backend,
                        const GraphQuestion& /*question*/) {
  return backend.builder ? level_named(backend.builder->cudagraph_support) : GraphLevel::kNever;
}

// The version is asked when the module is imported, before any configuration is there.
GraphLevel flash_attn_level(const SelectorContext& context, const BackendClass& /*backend*/,
                            const GraphQuestion& /*question*/) {
  const SelectorSettings& settings = context.settings;
  const SelectorSettings unconfigured = {
      .batch_invariant = settings.batch_invariant_at_import.value_or(settings.batch_invariant)};
  const SelectorContext at_import = {
      .profile = context.profile, .machine = context.machine, .settings = unconfigured};
  const std::optional<int> version = flash_attn_version(at_import);
  const bool always = version == 3 || (version == 4 && context.profile.at_least(0, 33));
  return always ? GraphLevel::kAlways : GraphLevel::kUniformBatch;
}

bool xqa_generation(const Machine& machine) {
  return machine.capability == kHopper || machine.family(12);
}

// XQA decodes these heads and caches; TRTLLM-gen all.
bool xqa_takes(const SelectorContext& context, const KvSpec& spec) {
  if (!xqa_generation(context.machine)) return true;
  if (spec.quant_mode == "NVFP4" && !context.machine.family(12)) return false;
  return spec.head_size >= kXqaLeastHead && spec.head_size <= kXqaMostHead &&
         spec.head_size % kXqaLeastHead == 0;
}

bool trtllm_decodes_all(const SelectorContext& context, const GraphQuestion& question) {
  if (question.specs.empty() || !context.settings.model) return false;
  return std::ranges::all_of(question.specs, [&](const KvSpec& spec) {
    if (spec.is_state()) return true;
    const bool later = context.profile.at_least(0, 33);
    return can_use_trtllm(context, context.settings.model->num_heads, spec.num_kv_heads,
                          AttentionPhase::kDecode) &&
           (!later || xqa_takes(context, spec));
  });
}

GraphLevel flashinfer_level(const SelectorContext& context, const BackendClass& /*backend*/,
                            const GraphQuestion& question) {
  const auto uniform = [](bool batch) {
    return batch ? GraphLevel::kUniformBatch : GraphLevel::kSingleTokenDecode;
  };
  if (!context.profile.at_least(0, 33)) {
    return uniform(context.machine.capability != kHopper && trtllm_decodes_all(context, question));
  }
  if (question.dcp > 1) return GraphLevel::kSingleTokenDecode;
  if (context.machine.capability < kHopper) {
    return uniform(!question.specs.empty() && !question.use_non_causal);
  }
  const bool causal = !question.use_non_causal || xqa_generation(context.machine);
  return uniform(causal && trtllm_decodes_all(context, question));
}

GraphLevel batch_with_speculation(const SelectorContext& context, const BackendClass& backend,
                                  const GraphQuestion& question) {
  return question.speculative_tokens > 0 ? GraphLevel::kUniformBatch
                                         : stated_level(context, backend, question);
}

// Rows of queries that its kernels take in one go.
bool native_rows(const SelectorContext& context, std::int64_t rows) {
  if (context.machine.platform == hardware::Platform::kCuda && context.machine.family(10)) {
    return true;
  }
  return rows == 1 || rows == 2 || (rows == 4 && context.machine.family(9));
}

GraphLevel indexer_level(const SelectorContext& context, const BackendClass& /*backend*/,
                         const GraphQuestion& question) {
  if (!context.profile.at_least(0, 33)) return GraphLevel::kUniformBatch;
  const bool cuda = context.machine.platform == hardware::Platform::kCuda;
  // Lengths are read on the device, or every query is a row of its own.
  const bool any_batch = (cuda && context.machine.family(10)) ||
                         !native_rows(context, 1 + question.speculative_tokens);
  return any_batch ? GraphLevel::kAlways : GraphLevel::kUniformBatch;
}

GraphLevel uniform_batch(const SelectorContext& /*context*/, const BackendClass& /*backend*/,
                         const GraphQuestion& /*question*/) {
  return GraphLevel::kUniformBatch;
}

// Both children, and the route: one token has no key ahead of it that an image could unmask, unless
// the mask may reach behind a window.
GraphLevel composite_level(const SelectorContext& context, const BackendClass& backend,
                           const GraphQuestion& question) {
  if (question.unclamped_window || backend.general == nullptr || backend.causal == nullptr) {
    return GraphLevel::kNever;
  }
  return std::min({graph_level(context, *backend.general, question),
                   graph_level(context, *backend.causal, question),
                   GraphLevel::kSingleTokenDecode});
}

struct Named {
  std::string_view name;
  LevelRule rule;
};

constexpr auto kRules = std::to_array<Named>({
    {"FlashAttentionMetadataBuilder.get_cudagraph_support", flash_attn_level},
    {"FlashInferMetadataBuilder.get_cudagraph_support", flashinfer_level},
    {"HpcAttnMetadataBuilder.get_cudagraph_support", batch_with_speculation},
    {"Step5DSAMetadataBuilder.get_cudagraph_support", batch_with_speculation},
    {"DeepseekV32IndexerMetadataBuilder.get_cudagraph_support", indexer_level},
    {"BailingLinearAttentionMetadataBuilder.get_cudagraph_support", uniform_batch},
    {"CompositeAttentionMetadataBuilder.get_cudagraph_support", composite_level},
});

}  // namespace

std::string_view graph_level_name(GraphLevel level) {
  return kLevelNames[static_cast<std::size_t>(level)];
}

GraphLevel graph_level(const SelectorContext& context, const BackendClass& backend,
                       const GraphQuestion& question) {
  if (!backend.builder) return GraphLevel::kNever;
  const auto* found = std::ranges::find(kRules, backend.builder->cudagraph_rule, &Named::name);
  return found == kRules.end() ? stated_level(context, backend, question)
                               : found->rule(context, backend, question);
}

}  // namespace kernelpath::engines::vllm
