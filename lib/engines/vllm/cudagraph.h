#pragma once

#include "engines/vllm/kv_cache_plan.h"
#include "engines/vllm/run_plan.h"
#include "engines/vllm/selector_input.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::vllm {

// What full CUDA graphs a backend's metadata builder allows, weakest first.
// Source: v1/attention/backend.py, AttentionCGSupport.
enum class GraphLevel : std::uint8_t { kNever, kSingleTokenDecode, kUniformBatch, kAlways };
std::string_view graph_level_name(GraphLevel level);  // "UNIFORM_SINGLE_TOKEN_DECODE", …

// What the level of a backend may depend on beside the machine.
struct GraphQuestion {
  std::span<const KvSpec> specs = {};  // of the layers in the group
  std::int64_t speculative_tokens = 0;
  std::int64_t dcp = 1;
  bool use_non_causal = false;
  bool unclamped_window = false;  // some layer's image mask may cross its window
};

// Source: get_cudagraph_support of the builders in v1/attention/backends.
GraphLevel graph_level(const SelectorContext& context, const BackendClass& backend,
                       const GraphQuestion& question);

// What decides on graphs before a model is built.
struct GraphModel {
  bool pooling = false;
  bool encoder_decoder = false;
  bool connector_needs_piecewise = false;
  bool dynamic_speculation_v1 = false;  // dynamic speculation on the V1 runner
};

// Sets run.cudagraph_mode from the user's or the optimisation level's, and
// run.piecewise_compilation where nothing is compiled; each downgrade is an event. Source:
// config/vllm.py.
std::vector<PlanEvent> configure_graphs(const SelectorContext& context, const GraphModel& model,
                                        RunConfig& run);

// The mode that the run ends with.
struct GraphPlan {
  std::string requested;  // after configure_graphs
  GraphLevel min_support = GraphLevel::kAlways;
  std::optional<std::string> limited_by = {};  // class of the weakest backend; nothing: ALWAYS
  std::string final_mode;
  std::int64_t uniform_decode_query_len = 1;
  std::vector<PlanEvent> events = {};
  std::optional<RunError> error = {};
};

// The mode against the weakest backend of all groups; sets run.cudagraph_mode.
// Source: v1/worker/gpu_model_runner.py, v1/worker/gpu/attn_utils.py, config/compilation.py
// resolve_cudagraph_mode_and_sizes.
GraphPlan resolve_graphs(const SelectorContext& context, const KvCachePlan& plan,
                         std::span<const BuiltLayer> layers, RunConfig& run);

}  // namespace kernelpath::engines::vllm
