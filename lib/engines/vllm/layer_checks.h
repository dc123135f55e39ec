#pragma once

#include "engines/vllm/kv_cache_plan.h"
#include "engines/vllm/run_plan.h"
#include "engines/vllm/selector_input.h"

#include <optional>
#include <span>

namespace kernelpath::engines::vllm {

// Context parallelism against every layer's implementation, once all are built (stage "dcp").
// Source: v1/worker/cp_utils.py, check_attention_cp_compatibility.
std::optional<RunError> check_context_parallel(const SelectorContext& context, const RunConfig& run,
                                               std::span<const BuiltLayer> layers);

// What only the backends' metadata builders refuse (stage "metadata builder").
std::optional<RunError> check_metadata_builders(const SelectorContext& context,
                                                const RunConfig& run,
                                                std::span<const BuiltLayer> layers);

// Longest query that a backend's decode path takes with speculation; 1 without. Nothing: the
// backend has no such split. Source: v1/attention/backend.py, _init_reorder_batch_threshold.
std::optional<std::int64_t> decode_query_threshold(const SelectorContext& context,
                                                   const RunConfig& run,
                                                   const BackendClass& backend);

}  // namespace kernelpath::engines::vllm
