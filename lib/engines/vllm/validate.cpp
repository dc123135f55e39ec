#include "engines/vllm/validate.h"

#include "engines/vllm/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace kernelpath::engines::vllm {
namespace {

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Collects the reasons of one candidate.
class Examination {
 public:
  Examination(const SelectorContext& context, const BackendClass& backend, Verdict& verdict)
      : context_(context), backend_(backend), verdict_(verdict) {}

  void require(bool holds, std::string_view otherwise) {
    if (!holds) verdict_.reasons.emplace_back(otherwise);
  }

  // A need that the backend must say yes to.
  void need(bool needed, Question question, std::string_view otherwise) {
    if (needed) require(asks(context_, backend_, question), otherwise);
  }

  // The layer and the backend must both be, or both not be.
  void match(bool layer, Question question, std::string_view name) {
    if (layer == asks(context_, backend_, question)) return;
    verdict_.reasons.push_back(fmt::format("{}{} not supported", layer ? "" : "non-", name));
  }

 private:
  const SelectorContext& context_;
  const BackendClass& backend_;
  Verdict& verdict_;
};

void examine_shapes(const SelectorContext& context, const BackendClass& backend,
                    const SelectorConfig& config, Examination& examination) {
  examination.require(takes_head_size(context, backend, config.head_size),
                      "head_size not supported");
  examination.require(takes_dtype(context, backend, config.dtype), "dtype not supported");
  examination.require(takes_kv_dtype(context, backend, config.kv_dtype),
                      "kv_cache_dtype not supported");
  examination.require(!config.block_size || takes_block_size(context, backend, *config.block_size),
                      "block_size not supported");
  examination.need(config.use_mm_prefix, Question::kMmPrefix,
                   "partial multimodal token full attention not supported");
  examination.match(config.use_mla, Question::kMla, "MLA");
  examination.need(config.has_sink, Question::kSink, "attention sinks not supported");
  examination.match(config.use_sparse, Question::kSparse, "sparse");
  examination.need(config.use_per_head_quant_scales, Question::kPerHeadScales,
                   "per-head quant scales not supported");
}

// Questions that came with later versions; older ones never ask them.
void examine_parallelism(const SelectorConfig& config, Examination& examination) {
  examination.need(config.use_pcp, Question::kPcp, "PCP not supported");
  examination.need(config.use_dcp, Question::kDcp, "DCP not supported");
  examination.need(config.use_adaptive_verification, Question::kQueryLengthsMismatch,
                   "device-cpu query lens mismatch not supported, this is needed for adaptive "
                   "verification");
}

}  // namespace

bool asks(const SelectorContext& context, const BackendClass& backend, Question question) {
  const Flag& flag = backend.flag(question);
  return flag.rule != nullptr ? flag.rule(context, backend) : flag.value;
}

bool takes_dtype(const SelectorContext& context, const BackendClass& backend,
                 std::string_view dtype) {
  if (backend.dtypes.rule != nullptr) return backend.dtypes.rule(context, backend, dtype);
  return contains(backend.dtypes.value, dtype);
}

bool takes_kv_dtype(const SelectorContext& context, const BackendClass& backend,
                    std::string_view kv_dtype) {
  if (backend.kv_dtypes.rule != nullptr) return backend.kv_dtypes.rule(context, backend, kv_dtype);
  return contains(backend.kv_dtypes.value, kv_dtype);
}

bool takes_head_size(const SelectorContext& context, const BackendClass& backend,
                     std::int64_t head_size) {
  if (backend.head_sizes.rule != nullptr) {
    return backend.head_sizes.rule(context, backend, head_size);
  }
  return backend.head_sizes.value.accepts(head_size);
}

bool takes_capability(const SelectorContext& context, const BackendClass& backend) {
  if (backend.capabilities.rule != nullptr) return backend.capabilities.rule(context, backend);
  const auto& ranges = backend.capabilities.value;
  return std::any_of(ranges.begin(), ranges.end(), [&](const CapabilityRange& range) {
    return range.contains(context.machine.capability);
  });
}

std::vector<BlockSize> kernel_block_sizes(const SelectorContext& context,
                                          const BackendClass& backend) {
  if (backend.block_sizes.rule != nullptr) return backend.block_sizes.rule(context, backend);
  return backend.block_sizes.value;
}

bool takes_block_size(const SelectorContext& context, const BackendClass& backend,
                      std::int64_t block_size) {
  if (backend.block_size_rule != nullptr) {
    return backend.block_size_rule(context, backend, block_size);
  }
  const std::vector<BlockSize> sizes = kernel_block_sizes(context, backend);
  if (sizes.empty()) return true;
  return std::any_of(sizes.begin(), sizes.end(), [&](const BlockSize& size) {
    return backend.block_size_exact ? block_size == size.size : block_size % size.size == 0;
  });
}

std::int64_t preferred_block_size(const SelectorContext& context, const BackendClass& backend,
                                  std::int64_t default_size) {
  if (backend.preferred_rule != nullptr) {
    return backend.preferred_rule(context, backend, default_size);
  }
  if (backend.preferred_always) return *backend.preferred_always;
  if (takes_block_size(context, backend, default_size)) return default_size;
  if (backend.preferred_otherwise) return *backend.preferred_otherwise;
  const std::vector<BlockSize> sizes = kernel_block_sizes(context, backend);
  const auto smallest =
      std::min_element(sizes.begin(), sizes.end(),
                       [](const BlockSize& a, const BlockSize& b) { return a.size < b.size; });
  return smallest == sizes.end() ? default_size : smallest->size;
}

std::optional<std::vector<std::string>> layouts_of(const SelectorContext& context,
                                                   const BackendClass& backend) {
  if (backend.layouts.rule != nullptr) return backend.layouts.rule(context, backend);
  return backend.layouts.value;
}

std::vector<std::string> common_layouts(const SelectorContext& context,
                                        std::span<const BackendClass* const> backends) {
  std::vector<std::vector<std::string>> lists;
  for (const BackendClass* backend : backends) {
    if (auto layouts = layouts_of(context, *backend)) lists.push_back(std::move(*layouts));
  }
  if (lists.empty()) lists.push_back(context.profile.layout_preference);
  const bool alike = std::all_of(lists.begin(), lists.end(),
                                 [&](const auto& layouts) { return layouts == lists.front(); });
  if (alike) return lists.front();
  std::vector<std::string> common;
  for (const std::string& layout : context.profile.layouts) {
    if (std::all_of(lists.begin(), lists.end(),
                    [&](const auto& layouts) { return contains(layouts, layout); })) {
      common.push_back(layout);
    }
  }
  // What most backends put first wins; ties keep the order of the enum.
  std::map<std::string, int, std::less<>> votes;
  for (const auto& layouts : lists) ++votes[layouts.front()];
  std::stable_sort(common.begin(), common.end(),
                   [&](const auto& a, const auto& b) { return votes[a] > votes[b]; });
  return common;
}

Verdict validate(const SelectorContext& context, const BackendClass& backend,
                 const SelectorConfig& config) {
  Verdict verdict;
  Examination examination(context, backend, verdict);
  examine_shapes(context, backend, config, examination);
  examination.require(takes_capability(context, backend), "compute capability not supported");
  examination.require(contains(backend.attention_types, config.attention_type),
                      fmt::format("attention type {} not supported", config.attention_type));
  const bool later = context.profile.at_least(0, 33);
  if (later) {
    examination.need(config.has_sliding_window, Question::kSlidingWindow,
                     "sliding window not supported");
    examination.need(config.use_rswa, Question::kRswa, "R-SWA not supported");
  }
  examination.need(config.use_non_causal, Question::kNonCausal,
                   "non-causal attention not supported");
  if (later) {
    examination.need(config.use_mla && config.use_non_causal && config.use_dcp,
                     Question::kNonCausalDcp, "non-causal MLA attention with DCP not supported");
  }
  examination.need(config.use_batch_invariant, Question::kBatchInvariance,
                   "batch invariance not supported");
  examination.need(config.use_kv_connector, Question::kKvConnector, "KV connector not supported");
  if (later) examine_parallelism(config, examination);
  if (backend.combination != nullptr) backend.combination(context, backend, config, verdict);
  if (backend.validation != nullptr) backend.validation(context, backend, config, verdict);
  return verdict;
}

}  // namespace kernelpath::engines::vllm
