#include "engines/vllm/cudagraph.h"

#include "engines/vllm/layer_spec.h"
#include "engines/vllm/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace kernelpath::engines::vllm {
namespace {

constexpr std::string_view kNone = "NONE";
constexpr std::string_view kPiecewise = "PIECEWISE";
constexpr std::string_view kFull = "FULL";
constexpr std::string_view kFullDecodeOnly = "FULL_DECODE_ONLY";
constexpr std::string_view kFullAndPiecewise = "FULL_AND_PIECEWISE";

bool has_full(std::string_view mode) { return mode.starts_with(kFull); }
bool has_piecewise(std::string_view mode) {
  return mode == kPiecewise || mode == kFullAndPiecewise;
}

// The mode without its piecewise part.
std::string_view without_piecewise(std::string_view mode) {
  if (mode == kPiecewise) return kNone;
  return mode == kFullAndPiecewise ? kFullDecodeOnly : mode;
}

std::string_view mode_of_level(std::int64_t level) {
  if (level <= 0) return kNone;
  return level == 1 ? kPiecewise : kFullAndPiecewise;
}

// Changes a mode and says why.
class Mode {
 public:
  Mode(std::string& mode, std::vector<PlanEvent>& events) : mode_(mode), events_(events) {}

  void become(std::string_view next, std::string_view rule, std::string_view why) {
    if (mode_ == next) return;
    events_.push_back({.rule = rule,
                       .candidate = "cudagraph_mode",
                       .reason = fmt::format("{} -> {}: {}", mode_, next, why),
                       .severity = Severity::kWarn});
    mode_ = next;
  }
  [[nodiscard]] const std::string& name() const { return mode_; }

 private:
  std::string& mode_;
  std::vector<PlanEvent>& events_;
};

void downgrade_for_model(const GraphModel& model, Mode& mode) {
  if (model.pooling && has_full(mode.name())) {
    mode.become(kPiecewise, "VLLM-GRAPH-POOLING", "pooling models have no full CUDA graphs.");
  } else if (model.encoder_decoder && mode.name() != kNone && mode.name() != kFullDecodeOnly) {
    mode.become(kFullDecodeOnly, "VLLM-GRAPH-ENCODER-DECODER",
                "encoder-decoder models have graphs of decode batches only.");
  }
  if (model.connector_needs_piecewise && has_full(mode.name())) {
    mode.become(kPiecewise, "VLLM-GRAPH-CONNECTOR",
                "the KV connector works layer by layer, which no full graph can capture.");
  }
}

// The weakest level of all groups, and whose it is.
struct Weakest {
  GraphLevel level = GraphLevel::kAlways;
  std::optional<std::string> class_name = {};
};

bool unclamped_window(std::span<const BuiltLayer> layers) {
  return std::ranges::any_of(layers, [](const BuiltLayer& layer) {
    return layer.window.has_value() && !layer.clamps_prefix_mask;
  });
}

GraphLevel level_of(const SelectorContext& context, const BuiltLayer& layer,
                    const GraphQuestion& question) {
  // Its batches are cut into chunks when metadata are built, whatever the backend below can do.
  if (layer.chunk) return GraphLevel::kNever;
  const BackendClass* backend = backend_of(context, layer);
  return backend == nullptr ? GraphLevel::kUniformBatch : graph_level(context, *backend, question);
}

// Until 0.32 the backends of a group are a set of classes, whose order is that of their addresses.
// Of equally weak ones the recorded runs name the layer's own backend rather than its indexer's,
// and the indexer's rather than this one.
constexpr std::string_view kBehindIndexer = "FlashInferMLASparseSM120Backend";

bool named_instead(const Profile& profile, const BuiltLayer& layer) {
  return !profile.at_least(0, 33) && layer.class_name != kBehindIndexer;
}

// The layers that share a cache's pages, and what each keeps there.
struct GroupLayers {
  std::vector<const BuiltLayer*> layers;
  std::vector<KvSpec> specs;
};

GroupLayers layers_of(const CacheGroup& group, const KvCachePlan& plan,
                      std::span<const BuiltLayer> layers) {
  GroupLayers out;
  out.layers.reserve(group.layers.size());
  out.specs.reserve(group.layers.size());
  for (const std::size_t layer : group.layers) {
    out.layers.push_back(&layers[layer]);
    out.specs.push_back(*plan.layers[layer].spec);
  }
  return out;
}

void weigh_group(const SelectorContext& context, const GroupLayers& group, GraphQuestion question,
                 Weakest& weakest) {
  const std::span<const KvSpec> specs = group.specs;
  const bool later = context.profile.at_least(0, 33);
  std::set<std::string_view> seen;
  bool named_here = false;  // the weakest so far is of this group
  for (std::size_t i = 0; i < group.layers.size(); ++i) {
    const BuiltLayer& layer = *group.layers[i];
    if (!later && !seen.insert(layer.class_name).second) continue;
    // Until 0.32 all specs of the group are asked about at once.
    question.specs = later ? specs.subspan(i, 1) : specs;
    const GraphLevel level = level_of(context, layer, question);
    const bool equal = named_here && level == weakest.level;
    if (level < weakest.level || (equal && named_instead(context.profile, layer))) {
      weakest = {.level = level, .class_name = layer.class_name};
      named_here = true;
    }
  }
}

RunError unsupported(const GraphPlan& plan, std::string_view rule) {
  return {
      .stage = "cudagraph",
      .type = "ValueError",
      .text = fmt::format(
          "CUDAGraphMode.{} is not supported with {} backend (support: {}); please try "
          "cudagraph_mode=PIECEWISE, and make sure compilation mode is VLLM_COMPILE",
          plan.final_mode, plan.limited_by.value_or("None"), graph_level_name(plan.min_support)),
      .rule = std::string(rule)};
}

// Source: resolve_cudagraph_mode_and_sizes, in its order.
void resolve_mode(const RunConfig& run, GraphPlan& plan) {
  Mode mode(plan.final_mode, plan.events);
  const std::string backend = plan.limited_by.value_or("");
  const bool piecewise = run.piecewise_compilation;
  if (mode.name() == kFull && plan.min_support != GraphLevel::kAlways) {
    if (plan.min_support == GraphLevel::kNever) {
      plan.error = unsupported(plan, "VLLM-GRAPH-FULL-UNSUPPORTED");
      return;
    }
    mode.become(piecewise ? kFullAndPiecewise : kFullDecodeOnly, "VLLM-GRAPH-MIXED-BATCH",
                backend + " has no graphs of mixed batches.");
  }
  const bool never = plan.min_support == GraphLevel::kNever;
  if (has_full(mode.name()) && mode.name() != kFull && never) {
    mode.become(piecewise ? kPiecewise : kNone, "VLLM-GRAPH-NEVER",
                backend + " has no full graphs at all.");
  }
  if (has_full(mode.name()) && plan.uniform_decode_query_len > 1 &&
      plan.min_support < GraphLevel::kUniformBatch) {
    mode.become(
        piecewise ? kPiecewise : kNone, "VLLM-GRAPH-SPECULATION",
        backend + " has graphs of single-token decodes only, and speculation decodes more.");
  }
  if (has_full(mode.name()) && never) plan.error = unsupported(plan, "VLLM-GRAPH-FULL-UNSUPPORTED");
}

}  // namespace

std::vector<PlanEvent> configure_graphs(const SelectorContext& context, const GraphModel& model,
                                        RunConfig& run) {
  std::vector<PlanEvent> events;
  const std::string_view by_level = mode_of_level(run.optimization_level);
  run.cudagraph_mode = run.user_cudagraph_mode.value_or(std::string(by_level));
  Mode mode(run.cudagraph_mode, events);
  if (run.optimization_level <= 0 || run.enforce_eager) run.piecewise_compilation = false;
  if (run.enforce_eager) {
    mode.become(kNone, "VLLM-GRAPH-EAGER", "--enforce-eager turns compilation and graphs off.");
    return events;
  }
  if (model.dynamic_speculation_v1 && has_full(mode.name())) {
    mode.become(kPiecewise, "VLLM-GRAPH-DYNAMIC-SPECULATION",
                "dynamic speculation changes the length of queries.");
  }
  if (has_piecewise(mode.name()) && !run.piecewise_compilation) {
    const bool later = context.profile.at_least(0, 33);
    mode.become(later ? without_piecewise(mode.name()) : kNone, "VLLM-GRAPH-NOT-COMPILED",
                "piecewise graphs need piecewise compilation.");
  }
  downgrade_for_model(model, mode);
  return events;
}

GraphPlan resolve_graphs(const SelectorContext& context, const KvCachePlan& plan,
                         std::span<const BuiltLayer> layers, RunConfig& run) {
  GraphPlan graphs = {.requested = run.cudagraph_mode,
                      .final_mode = run.cudagraph_mode,
                      .uniform_decode_query_len = 1 + run.speculative_tokens};
  const GraphQuestion question = {.speculative_tokens = run.speculative_tokens,
                                  .dcp = run.dcp,
                                  .use_non_causal = run.use_non_causal,
                                  .unclamped_window = unclamped_window(layers)};
  Weakest weakest;
  for (const CacheGroup& group : plan.groups) {
    weigh_group(context, layers_of(group, plan, layers), question, weakest);
  }
  graphs.min_support = weakest.level;
  graphs.limited_by = weakest.class_name;
  if (graphs.final_mode != kNone) resolve_mode(run, graphs);
  run.cudagraph_mode = graphs.final_mode;
  return graphs;
}

}  // namespace kernelpath::engines::vllm
