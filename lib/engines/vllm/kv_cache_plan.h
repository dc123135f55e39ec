#pragma once

#include "engines/resolution.h"
#include "engines/vllm/kv_spec.h"
#include "engines/vllm/profile.h"
#include "engines/vllm/run_plan.h"
#include "engines/vllm/selector_input.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::vllm {

// What the cache part reads of the model beside its layers.
struct CacheModel {
  bool use_mla = false;
  bool hybrid = false;            // the class is, and not all its layers are attention
  std::int64_t head_size = 0;     // of the model, whatever a layer has
  std::int64_t num_kv_heads = 0;  // of a rank
  std::int64_t num_heads = 0;     // query heads of a rank
  std::optional<std::int64_t> mamba_chunk_size = {};
  std::optional<std::int64_t> user_mamba_block_size = {};
};

// A change or a limit that the cache part met, as a step of a Resolution.
struct PlanEvent {
  std::string_view rule;  // of kv_cache_rules(): "VLLM-KV-BLOCK-PREFERRED"
  std::string candidate;  // what it is about
  std::string reason;
  Severity severity = Severity::kInfo;
};

// One axis of a cache tensor: a number, or "num_blocks" (value empty).
using ShapeAxis = std::optional<std::int64_t>;

// The cache of one built layer.
struct LayerCache {
  std::optional<KvSpec> spec = {};  // nothing: the layer keeps none
  std::int64_t page_bytes = 0;
  std::int64_t unpadded_page_bytes = 0;
  // The rest: attention layers only.
  std::int64_t kernel_block_size = 0;
  std::vector<ShapeAxis> shape = {};                           // first axis as a rule: num_blocks
  std::optional<std::vector<std::int64_t>> stride_order = {};  // nothing: the backend says none
  std::optional<std::size_t> group = {};
};

struct CacheGroup {
  std::string spec = {};  // class name; "UniformTypeKVCacheSpecs" where it keeps a spec a layer
  std::vector<std::size_t> layers = {};  // indices of the built layers
  std::int64_t block_size = 0;
  std::int64_t page_bytes = 0;
};

struct KvCachePlan {
  std::vector<LayerCache> layers;  // one a built layer; empty where the run ended before
  std::vector<CacheGroup> groups;
  std::vector<PlanEvent> events;
  std::vector<RunError> errors;  // the run ends with the first
  std::string layout;            // "NHD", "HND"; since 0.33 "LBNHC", …; empty: not reached
};

// Everything after the model is built and before graphs: the block size, the checks of context
// parallelism, the spec of each layer, groups, kernel blocks and shapes. Changes `run` as the
// engine does (block_size, mamba_*, kv_layout); `run.rewrites` is the caller's
// (list_rewrites). Source: platforms/interface.py, v1/core/kv_cache_utils.py,
// v1/worker/{gpu_model_runner,utils}.py.
KvCachePlan plan_kv_cache(const SelectorContext& context, const CacheModel& model,
                          std::span<const BuiltLayer> layers, RunConfig& run);

// What the engine changed by itself between the two, in the spelling and the order of the recorded
// answers: fields in the order of the final configuration, then pages, prefix caching, the hybrid
// manager, and graphs (`requested_graphs`: the mode after the configuration was read; empty where
// the run ended before).
std::vector<std::string> list_rewrites(const RunConfig& before, const RunConfig& after,
                                       std::string_view requested_graphs);

}  // namespace kernelpath::engines::vllm
