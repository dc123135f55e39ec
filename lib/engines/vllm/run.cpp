#include "engines/vllm/run.h"

#include "engines/vllm/layer_checks.h"
#include "engines/vllm/run_state.h"

namespace kernelpath::engines::vllm {
namespace {

SelectorSettings settings_of(const RunState& state) {
  const RunFlags& flags = state.flags();
  const RunConfig& run = state.run();
  return {.flash_attn_version = run.flash_attn_version,
          .use_trtllm_attention = flags.use_trtllm_attention,
          .batch_invariant = flags.batch_invariant,
          .batch_invariant_at_import = flags.batch_invariant_at_import,
          .kv_connector = flags.kv_connector,
          .dcp = run.dcp,
          .pcp = run.pcp,
          .run_kv_dtype = run.cache_dtype,
          .model = facts_of(state.question.model, state.view())};
}

CacheModel cache_model(const RunState& state) {
  const ModelView& view = state.view();
  const config::ModelConfig& model = state.question.model;
  CacheModel out{.use_mla = view.use_mla,
                 .hybrid = view.hybrid,
                 .head_size = view.head_size,
                 .num_kv_heads = view.kv_heads,
                 .num_heads = view.heads,
                 .user_mamba_block_size = state.flags().mamba_block_size};
  out.mamba_chunk_size = text_integer(model, "mamba_chunk_size");
  if (!out.mamba_chunk_size) out.mamba_chunk_size = text_integer(model, "chunk_size");
  return out;
}

void add_events(const std::vector<PlanEvent>& events, RunResult& out) {
  for (const PlanEvent& event : events) {
    out.events.push_back({.rule = std::string(event.rule),
                          .severity = event.severity,
                          .candidate = event.candidate,
                          .reason = event.reason});
  }
}

bool add_errors(const std::vector<RunError>& errors, RunState& state) {
  for (const RunError& error : errors) state.raise(error);
  return errors.empty();
}

// Optimisation level, eager mode and the model's kind decide on graphs before a model is built.
void configure_graph_mode(RunState& state) {
  const GraphModel model{
      .pooling = state.view().pooling,
      .encoder_decoder = state.view().encoder_decoder,
      .dynamic_speculation_v1 = state.flags().speculative.dynamic && !state.run().v2_runner};
  add_events(configure_graphs(state.context(), model, state.run()), state.out);
}

bool plan_cache(RunState& state) {
  RunResult& out = state.out;
  out.cache = plan_kv_cache(state.context(), cache_model(state), out.layers, out.run);
  add_events(out.cache->events, out);
  return add_errors(out.cache->errors, state);
}

bool plan_graphs(RunState& state) {
  RunResult& out = state.out;
  out.graphs = resolve_graphs(state.context(), *out.cache, out.layers, out.run);
  add_events(out.graphs->events, out);
  if (!out.graphs->error) return true;
  return state.raise(*out.graphs->error);
}

bool build_metadata(RunState& state) {
  const auto error = check_metadata_builders(state.context(), state.run(), state.out.layers);
  return !error || state.raise(*error);
}

// Returns the mode after the configuration was read, empty where the run ended before.
std::string walk(RunState& state) {
  if (!find_model(state)) return {};
  const bool complete = resolve_speculation(state) && configure(state) &&
                        apply_engine_hooks(state) && check_parallelism(state);
  if (!complete) {
    state.out.view.reset();
    return {};
  }
  configure_graph_mode(state);
  if (!check_configuration(state)) {
    state.out.view.reset();
    return {};
  }
  state.out.configured = state.run();
  std::string graphs = state.run().cudagraph_mode;
  state.settings = settings_of(state);
  if (!build_and_select(state) || !build_draft(state)) return graphs;
  if (plan_cache(state) && plan_graphs(state) && build_metadata(state)) check_draft_groups(state);
  return graphs;
}

}  // namespace

RunResult resolve_run(const RunQuestion& question) {
  RunResult out;
  RunState state{.question = question, .out = out};
  const std::string graphs = walk(state);
  if (out.view) {
    out.rewrites = list_rewrites(out.requested, out.run, graphs);
    out.run.rewrites = out.rewrites;
  }
  return out;
}

}  // namespace kernelpath::engines::vllm
