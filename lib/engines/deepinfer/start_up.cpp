#include "engines/deepinfer/start_up.h"

#include "base/text.h"
#include "engines/deepinfer/python.h"
#include "engines/deepinfer/topology.h"

#include <fmt/format.h>

#include <algorithm>

namespace kernelpath::engines::deepinfer {
namespace {

Fault value_error(std::string_view stage, std::string text, std::string rule) {
  return {.stage = std::string(stage),
          .type = "ValueError",
          .text = std::move(text),
          .rule = std::move(rule)};
}

// Two intervals of the scheduler are read while its module is imported.
struct AttemptIntervals {
  std::int64_t prefill = 0;
  std::int64_t any = 0;
};

Checked<AttemptIntervals> read_arguments_stage(const Question& question, StartUp& out) {
  AttemptIntervals intervals;
  KERNELPATH_TRY(prefill, question.variables.integer("PREFILL_ATTEMPT_INTERVAL", "args"));
  KERNELPATH_TRY(any, question.variables.integer("PREFILL_ANY_ATTEMPT_INTERVAL", "args"));
  intervals = {.prefill = prefill, .any = any};
  if (!question.arguments.unknown.empty()) {
    return raise({.stage = "args",
                  .type = "TypeError",
                  .text = fmt::format("EngineArgs.__init__() got an unexpected keyword argument {}",
                                      python_repr(question.arguments.unknown)),
                  .rule = "unknown-argument"});
  }
  out.overlap_scheduling = overlap_scheduling(question.arguments, question.variables);
  out.multimodal_pool = multimodal_pool(question.arguments, question.variables);
  return intervals;
}

Checked<bool> check_scheduler(const Question& question, const Limits& limits,
                              const AttemptIntervals& intervals) {
  static constexpr std::string_view kStage = "configs";
  if (!question.arguments.chunked_prefill && limits.max_num_batched_tokens < limits.max_model_len) {
    return raise(value_error(
        kStage,
        fmt::format("max_num_batched_tokens ({}) is smaller than max_model_len ({}). This "
                    "effectively limits the maximum sequence length to max_num_batched_tokens and "
                    "makes the engine reject longer sequences. Please increase "
                    "max_num_batched_tokens or decrease max_model_len.",
                    limits.max_num_batched_tokens, limits.max_model_len),
        "batched-tokens-below-model-len"));
  }
  const auto check = [](std::string_view name, std::int64_t value,
                        std::string rule) -> Checked<bool> {
    if (value >= 1) return true;
    return raise(
        value_error(kStage, fmt::format("{} ({}) should be >= 1", name, value), std::move(rule)));
  };
  KERNELPATH_CHECK_OK(
      check("prefill_attempt_interval", intervals.prefill, "prefill-attempt-interval"));
  return check("prefill_any_attempt_interval", intervals.any, "prefill-any-attempt-interval");
}

// Results are published together at the end: the engine has none of them before all are judged.
Checked<bool> configure(const Question& question, const AttemptIntervals& intervals, StartUp& out) {
  const std::string stage = "configs";
  const std::string format = to_lower(question.arguments.load_format);
  if (format != "auto" && format != "dummy") return refuse(stage, "load-format");
  KERNELPATH_TRY(limits, resolve_limits(question.arguments, question.variables));
  KERNELPATH_TRY(model, read_model(question.config, question.folder));
  KERNELPATH_TRY(topology, build_topology(model, question.variables));
  const std::int64_t block = question.arguments.tokens_per_block;
  if (block != -1 && block != kTokensPerBlock) {
    return refuse(stage, "tokens-per-block-not-128",
                  fmt::format("resolved_tokens_per_block={} self.tokens_per_block={}",
                              kTokensPerBlock, block));
  }
  if (question.arguments.gpu_memory_utilization > 1.0) {
    return raise(value_error(stage,
                             fmt::format("GPU memory utilization must be less than 1.0. Got {}.",
                                         question.arguments.gpu_memory_utilization_text),
                             "gpu-memory-above-1"));
  }
  KERNELPATH_TRY(parallel, resolve_parallel_sizes(question.arguments));
  KERNELPATH_CHECK_OK(check_scheduler(question, limits, intervals));
  out.multimodal = question.arguments.engine_type != EngineType::kCompletion;
  out.limits = limits;
  out.parallel = parallel;
  out.model = std::move(model);
  out.topology = std::move(topology);
  return true;
}

Checked<bool> configure_worker(const Question& question, StartUp& out) {
  KERNELPATH_TRY(graphs, plan_graphs(question.arguments, *out.limits, question.variables));
  out.graphs = std::move(graphs);
  if (question.machine.platform == Platform::kAscend &&
      question.variables.flag("BATCH_INVARIANT")) {
    return refuse("kernels", "batch-invariant-on-ascend");
  }
  KERNELPATH_TRY(extra, question.variables.count("OVERRIDE_NUM_EXTRA_EXPERTS", "load"));
  const Model& model = *out.model;
  const std::int64_t ranks = out.parallel->expert;
  out.experts = Experts{
      .routed = model.routed_experts,
      .redundant = redundant_experts(model.routed_experts, extra, ranks),
      .draft_routed = model.draft_routed_experts,
      .draft_redundant = redundant_experts(model.draft_routed_experts, extra, ranks),
  };
  return true;
}

Checked<Truncation> resolve_truncation(const Model& model, const Variables& variables) {
  constexpr std::string_view kStage = "yoco";
  Truncation out;
  KERNELPATH_TRY(mode, variables.truncation_mode(kStage));
  out.mode = mode;
  out.boundary_layer = model.boundary;
  if (mode != "off") out.boundary = model.boundary;
  if (mode != "compact") return out;
  const auto in_consumer = [&](std::int64_t layer) { return layer >= model.boundary; };
  const std::vector<std::int64_t>& targets = model.draft_target_layers;
  const bool all = std::ranges::all_of(targets, in_consumer);
  if (!all && std::ranges::any_of(targets, in_consumer)) {
    std::string list;
    for (const std::int64_t target : targets) {
      list += fmt::format("{}{}", list.empty() ? "" : ", ", target);
    }
    return refuse(std::string(kStage), "draft-targets-straddle-boundary",
                  fmt::format("yoco consumer compaction requires DFlash target layers on the same "
                              "side of n_prefill_layer ({}), got ({})",
                              model.boundary, list));
  }
  if (std::ranges::any_of(model.engram.layers, [&](std::int64_t layer) {
        return in_consumer(layer) && layer < model.num_layers;
      })) {
    return refuse(std::string(kStage), "engram-in-consumer-half",
                  "yoco consumer compaction does not support Engram in consumer layers yet.");
  }
  out.targets_in_consumer = all && !targets.empty();
  return out;
}

Checked<bool> check_loaded_truncation(const Model& model, const Variables& variables) {
  const std::string stage = "load";
  KERNELPATH_TRY(mode, variables.truncation_mode(stage));
  if (mode == "off") return true;
  if (model.sliding_window <= 0) return refuse(stage, "yoco-window-not-positive");
  KERNELPATH_TRY(keep, variables.count("YOCO_PREFILL_KEEP_TOKENS", stage));
  KERNELPATH_TRY(backtracking, variables.backtracking_tokens(stage));
  if (keep >= model.sliding_window + backtracking) return true;
  return refuse(stage, "yoco-keep-tokens-too-small",
                fmt::format("DEEPINFER_YOCO_PREFILL_KEEP_TOKENS ({}) must be >= window_size ({}) + "
                            "DEEPINFER_MAX_BACKTRACKING_TOKENS ({})",
                            keep, model.sliding_window, backtracking));
}

Checked<bool> load_model(const Question& question, StartUp& out) {
  const Model& model = *out.model;
  KERNELPATH_CHECK_OK(check_parameter_tree(model, *out.topology));
  if (out.limits->draft_length > 0 && model.num_draft_layers == 0) {
    return raise({.stage = "build",
                  .type = "IndexError",
                  .text = fmt::format("{} draft layers, {} drafted tokens", model.num_draft_layers,
                                      out.limits->draft_length),
                  .rule = "no-draft-layer"});
  }
  KERNELPATH_TRY(layers, build_attention({.model = model,
                                          .topology = *out.topology,
                                          .arguments = question.arguments,
                                          .limits = *out.limits,
                                          .variables = question.variables,
                                          .machine = question.machine}));
  out.layers = std::move(layers);
  KERNELPATH_TRY(truncation, resolve_truncation(model, question.variables));
  out.truncation = std::move(truncation);
  KERNELPATH_CHECK_OK(check_loaded_truncation(model, question.variables));
  KERNELPATH_TRY(ring, window_ring(model, question.variables, "load"));
  out.window_ring = ring;
  out.blocks_per_sequence = blocks_per_sequence(out.limits->runtime_model_len);
  KERNELPATH_TRY(kv, size_kv_cache(model, *out.topology, question.arguments, question.variables,
                                   kTokensPerBlock));
  out.kv = std::move(kv);
  return true;
}

// A constant of the device that start-up reads last. Source: device.py, get_bf16_tflops_limit.
Checked<std::int64_t> bf16_tflops(const Machine& machine) {
  if (machine.platform == Platform::kAscend) return 432;
  if (machine.sm && *machine.sm / 10 == 10) return machine.arm_cpu ? 2500 : 2250;
  return raise({.stage = "ready",
                .type = "RuntimeError",
                .text = "unknown GPU type",
                .rule = "unknown-gpu"});
}

Checked<bool> run(const Question& question, StartUp& out) {
  KERNELPATH_TRY(intervals, read_arguments_stage(question, out));
  KERNELPATH_CHECK_OK(configure(question, intervals, out));
  KERNELPATH_CHECK_OK(configure_worker(question, out));
  KERNELPATH_CHECK_OK(load_model(question, out));
  KERNELPATH_TRY(tflops, bf16_tflops(question.machine));
  out.bf16_tflops = tflops;
  return true;
}

}  // namespace

StartUp start_up(const Question& question) {
  StartUp out;
  auto finished = run(question, out);
  if (!finished) out.fault = std::move(finished).error();
  return out;
}

}  // namespace kernelpath::engines::deepinfer
