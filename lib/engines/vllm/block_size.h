#pragma once

#include "engines/vllm/kv_cache_plan.h"
#include "engines/vllm/run_plan.h"
#include "engines/vllm/selector_input.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace kernelpath::engines::vllm {

// What the choice of the run's block size leaves behind.
struct BlockSizeChoice {
  // The page that unquantized layers are padded to beside quantized ones.
  std::optional<std::int64_t> skip_page = {};
  std::vector<PlanEvent> events = {};
  std::optional<RunError> error = {};
};

// Sets run.block_size, run.mamba_block_size and run.mamba_page_size_padded: the backends'
// preference (unless the user gave a size), then a hybrid model's pages, then those of mixed cache
// types; the last two override the user. Source: platforms/interface.py,
// update_block_size_for_backend.
BlockSizeChoice choose_block_size(const SelectorContext& context, const CacheModel& model,
                                  std::span<const BuiltLayer> layers, RunConfig& run);

// The final size against context parallelism and the alignment of states.
// Source: config/vllm.py, validate_block_size.
std::optional<RunError> validate_block_size(const SelectorContext& context, const RunConfig& run);

}  // namespace kernelpath::engines::vllm
