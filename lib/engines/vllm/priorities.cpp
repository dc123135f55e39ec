#include "base/assert.h"
#include "engines/vllm/selector.h"

#include <algorithm>

namespace kernelpath::engines::vllm {
namespace {

// Whether a fact holds for this request on this machine.
bool holds(const SelectorContext& context, const SelectorRequest& request, Fact fact) {
  const SelectorConfig& config = request.config;
  const Machine& machine = context.machine;
  const bool aiter = machine.packages.aiter && machine.cdna > 0;
  switch (fact) {
    case Fact::kQuantizedKv:
      return context.profile.is_quantized(config.kv_dtype);
    case Fact::kFewHeads:
      return request.num_heads &&
             *request.num_heads <= context.profile.priorities.few_heads_at_most;
    case Fact::kNonCausal:
      return config.use_non_causal;
    case Fact::kHeadSize512:
      return config.head_size == 512;
    case Fact::kMmPrefix:
      return config.use_mm_prefix;
    case Fact::kSparse:
      return config.use_sparse;
    case Fact::kMla:
      return config.use_mla;
    case Fact::kKvConnector:
      return config.use_kv_connector;
    case Fact::kAiterMla:
    case Fact::kAiterMha:
      return aiter && machine.aiter_enabled;
    case Fact::kAiterFound:
      return aiter;
    case Fact::kAiterRdna:
      return machine.packages.aiter && machine.rdna == 4 && machine.aiter_enabled;
  }
  return false;
}

const std::vector<std::string>& order_of(const SelectorContext& context,
                                         const SelectorRequest& request,
                                         const std::vector<PriorityRow>& rows) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const PriorityRow& row) {
    return std::all_of(row.when.begin(), row.when.end(), [&](const auto& condition) {
      return holds(context, request, condition.first) == condition.second;
    });
  });
  KERNELPATH_ASSERT(found != rows.end());
  return found->order;
}

}  // namespace

const std::vector<std::string>& backend_priorities(const SelectorContext& context,
                                                   const SelectorRequest& request) {
  const Priorities& priorities = context.profile.priorities;
  if (context.machine.platform == hardware::Platform::kRocm) {
    return order_of(context, request, priorities.rocm);
  }
  const auto& entries = request.config.use_mla ? priorities.mla : priorities.plain;
  const int major = context.machine.capability.major;
  const auto lists = [&](const PriorityEntry& entry) {
    return std::find(entry.majors.begin(), entry.majors.end(), major) != entry.majors.end();
  };
  const auto found = std::find_if(entries.begin(), entries.end(), lists);
  // Generations that the extraction did not ask for are "anything else", the first entry.
  return order_of(context, request, found == entries.end() ? entries.front().rows : found->rows);
}

}  // namespace kernelpath::engines::vllm
