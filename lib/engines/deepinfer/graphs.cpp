#include "engines/deepinfer/graphs.h"

#include <algorithm>
#include <string>

namespace kernelpath::engines::deepinfer {

Checked<std::vector<std::int64_t>> graph_sizes(std::int64_t largest, std::int64_t interval,
                                               std::string_view stage) {
  // More sizes than any deployment captures: a hostile number must not become an allocation.
  constexpr std::int64_t kMostSizes = 1'000'000;
  const std::int64_t step = std::min(interval, largest);
  if (step == 0) {
    return raise({.stage = std::string(stage),
                  .type = "ValueError",
                  .text = "range() arg 3 must not be zero",
                  .rule = "graph-interval-zero"});
  }
  constexpr std::int64_t kLargestSize = std::int64_t{1} << 40;
  if (largest > kLargestSize || (step > 0 && largest / step > kMostSizes)) {
    return raise({.stage = std::string(stage),
                  .type = "MemoryError",
                  .text = "more graph sizes than fit in memory",
                  .rule = "graph-sizes-too-many"});
  }
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = 1; size < step; size *= 2) sizes.push_back(size);
  // A negative step runs from itself down to the largest, which is no step at all.
  for (std::int64_t size = step; step > 0 && size < largest; size += step) sizes.push_back(size);
  sizes.push_back(largest);
  return sizes;
}

Checked<GraphPlan> plan_graphs(const Arguments& arguments, const Limits& limits,
                               const Variables& variables) {
  constexpr std::string_view kStage = "runner";
  GraphPlan plan;
  plan.main = !variables.flag("ENFORCE_EAGER") && arguments.engine_type != EngineType::kPrompt;
  plan.draft = plan.main && !variables.flag("DFLASH_ENFORCE_EAGER") && limits.draft_length > 0;
  if (plan.main) {
    KERNELPATH_TRY(interval, variables.integer("CUDAGRAPH_BATCH_SIZE_INTERVAL", kStage));
    KERNELPATH_TRY(sizes, graph_sizes(limits.max_num_decoding_tokens, interval, kStage));
    plan.main_sizes = std::move(sizes);
  }
  if (plan.draft) {
    KERNELPATH_TRY(interval, variables.integer("DFLASH_CUDAGRAPH_BATCH_SIZE_INTERVAL", kStage));
    KERNELPATH_TRY(sizes, graph_sizes(arguments.max_num_seqs, interval, kStage));
    plan.draft_sizes = std::move(sizes);
  }
  return plan;
}

}  // namespace kernelpath::engines::deepinfer
