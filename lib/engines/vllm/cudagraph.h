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

// The level of one built layer's backend, given its spec and the run.
GraphLevel graph_level(const SelectorContext& context, const RunConfig& run,
                       const BuiltLayer& layer, std::span<const BuiltLayer> group);

// The mode that the configuration ends with, before a model is built: `run.cudagraph_mode` from the
// user's or the optimisation level's, with each downgrade as an event. Source: config/vllm.py.
struct GraphModel {
  bool pooling = false;
  bool encoder_decoder = false;
  bool connector_needs_piecewise = false;
  bool dynamic_speculation_v1 = false;  // dynamic speculation on the V1 runner
};
std::vector<PlanEvent> configure_graphs(const GraphModel& model, RunConfig& run);

// The mode that the run ends with.
struct GraphPlan {
  std::string requested;  // after configure_graphs
  GraphLevel min_support = GraphLevel::kAlways;
  std::optional<std::string> limited_by = {};  // class of the weakest backend; nothing: ALWAYS
  std::string final_mode;
  std::int64_t uniform_decode_query_len = 1;
  std::vector<PlanEvent> events = {};
  std::vector<RunError> errors = {};
};

// Source: v1/worker/gpu_model_runner.py, config/compilation.py
// resolve_cudagraph_mode_and_sizes. Changes run.cudagraph_mode.
GraphPlan resolve_graphs(const SelectorContext& context, const KvCachePlan& plan,
                         std::span<const BuiltLayer> layers, RunConfig& run);

}  // namespace kernelpath::engines::vllm
