#include "engines/trtllm/memory_resolution.h"

#include "base/checked.h"
#include "base/units.h"
#include "engines/memory_account.h"
#include "engines/step_draft.h"
#include "engines/trtllm/kv_cache.h"
#include "engines/trtllm/rules_engine.h"
#include "memory/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace kernelpath::engines::trtllm {
namespace {

KvDeployment kv_deployment(const LayerContext& context) {
  return {.dtype = context.kv_dtype,
          .tp = context.arguments.integer("tensor_parallel_size").value_or(1),
          .pp = context.arguments.integer("pipeline_parallel_size").value_or(1),
          .pp_rank = 0,
          .attention_dp = context.arguments.flag("enable_attention_dp")};
}

void resolve_weights(const LayerContext& context, Memory& memory, std::vector<Step>& steps) {
  const Arguments& arguments = context.arguments;
  const std::string dtype = arguments.text("dtype").value_or("auto");
  resolve_rank_weights(
      context.request,
      {.parallel = {.tp = arguments.integer("tensor_parallel_size").value_or(1),
                    .pp = arguments.integer("pipeline_parallel_size").value_or(1),
                    .ep = arguments.integer("moe_expert_parallel_size").value_or(1),
                    .attention_dp = arguments.flag("enable_attention_dp")},
       .load_mtp = arguments.text("speculative_config.decoding_type") == "MTP",
       .dtype = dtype == "auto" ? std::nullopt : std::optional(dtype)},
      {.unknown = "TRT-WEIGHTS-UNKNOWN",
       .counted = "TRT-WEIGHTS",
       .over_memory = "TRT-WEIGHTS-OVER-MEMORY"},
      memory, memory_note(append_engine_step, steps));
}

// Attention layers of the first stage, by their index in the model.
std::map<std::int64_t, bool> first_stage(const std::vector<LayerGroup>& groups, std::int64_t pp) {
  std::vector<std::int64_t> attention;
  for (const LayerGroup& group : groups) {
    if (group.kv.dtype.empty()) continue;
    attention.insert(attention.end(), group.layers.begin(), group.layers.end());
  }
  std::sort(attention.begin(), attention.end());
  const LayerRange range = pipeline_layers(static_cast<std::int64_t>(attention.size()), pp, 0);
  std::map<std::int64_t, bool> out;
  for (std::size_t i = 0; i < attention.size(); ++i) {
    const auto position = static_cast<std::int64_t>(i);
    out[attention[i]] = position >= range.first && position < range.last;
  }
  return out;
}

// What `layers` layers of this geometry keep, of all stages.
KvParts parts_of(KvGeometry geometry, std::int64_t layers) {
  geometry.num_layers = layers;
  const auto bytes = kv_bytes_per_token(geometry);
  if (!bytes || bytes->error) return {};
  const std::int64_t tp = geometry.attention_dp ? 1 : geometry.tp;
  const std::int64_t heads = geometry.mla ? 1 : ceil_div(geometry.num_kv_heads, tp);
  const std::int64_t width = geometry.mla
                                 ? geometry.kv_lora_rank.value_or(0) + geometry.qk_rope_head_dim
                                 : 2 * geometry.head_dim;
  return {.values = layers * heads * width,
          .data_bytes = bytes->runtime_data_bytes,
          .scale_bytes = bytes->runtime_scale_bytes,
          .index_bytes = 0,
          .padding_bytes = 0};
}

void share_among_groups(const LayerContext& context, const KvGeometry& model,
                        std::vector<LayerGroup>& groups) {
  const std::map<std::int64_t, bool> local = first_stage(groups, model.pp);
  for (LayerGroup& group : groups) {
    if (group.kv.dtype.empty()) continue;
    const config::Layer& layer =
        context.request.model.layers[static_cast<std::size_t>(group.layers.front())];
    KvGeometry geometry = model;
    geometry.pp = 1;
    geometry.num_layers = std::count_if(group.layers.begin(), group.layers.end(),
                                        [&](std::int64_t index) { return local.at(index); });
    geometry.kv_heads_per_layer.clear();
    geometry.num_kv_heads = layer.num_key_value_heads;
    if (!geometry.mla) geometry.head_dim = layer.head_dim;
    group.kv_parts = parts_of(geometry, static_cast<std::int64_t>(group.layers.size()));
    if (geometry.num_layers == 0) continue;
    const auto bytes = kv_bytes_per_token(geometry);
    if (bytes && !bytes->error) group.kv_bytes_per_token = bytes->runtime_total_bytes();
  }
}

// Why the KV bytes are what they are. The engine takes one head size for all layers, and the groups
// have their own; `model` is the geometry of all stages.
void explain_token(const LayerContext& context, const KvGeometry& model,
                   const std::vector<LayerGroup>& groups, Memory& memory) {
  KvGeometry whole = model;
  whole.pp = 1;
  const auto all_stages = kv_bytes_per_token(whole);
  if (!all_stages || all_stages->error) return;
  std::int64_t in_groups = 0;
  for (const LayerGroup& group : groups) {
    in_groups += group.kv_parts.data_bytes + group.kv_parts.scale_bytes;
  }
  const std::int64_t of_all = all_stages->runtime_total_bytes();
  TokenQuestion question{.ranks = model.attention_dp ? 1 : model.tp};
  question.shape_reason = "the engine's own reading of the layer's heads";
  question.scales_reason = "an FP8 scale for 16 values";
  question.rows = {{.cause = std::string(memory_cause::kUniform),
                    .bytes = of_all - in_groups,
                    .reason = fmt::format("the engine counts {} layers with heads of {}",
                                          model.num_layers, model.head_dim)},
                   {.cause = std::string(memory_cause::kStages),
                    .bytes = memory.kv_bytes_per_token.value_or(0) - of_all,
                    .reason = fmt::format("a rank has the layers of one of {} stages", model.pp)}};
  account_for_token(context.request.model, question, groups, memory);
  account_for_sequence({}, memory);
}

// The engine takes a fraction of what is free, divides it by its estimate of a token, and allocates
// what so many tokens really take.
void explain_pool(const LayerContext& context, const KvPool& pool, Memory& memory) {
  const std::int64_t room =
      context.request.device.usable_bytes().value_or(0) - memory.weight_bytes.value_or(0);
  const std::int64_t estimate = memory.kv_bytes_per_token_estimate.value_or(0);
  const std::int64_t block =
      context.arguments.integer("kv_cache_config.tokens_per_block").value_or(32);
  const std::int64_t budgeted = pool.blocks * block * estimate;
  account_for_pool(
      context.request.device.usable_bytes(),
      {{.cause = std::string(memory_cause::kMemoryShare),
        .bytes = pool.budget_bytes - room,
        .reason = fmt::format(
            "free_gpu_memory_fraction {} of what is free",
            context.arguments.number("kv_cache_config.free_gpu_memory_fraction").value_or(0.9))},
       {.cause =
            std::string(pool.limited_by_max_tokens ? memory_cause::kStated : memory_cause::kPages),
        .bytes = budgeted - pool.budget_bytes,
        .reason = pool.limited_by_max_tokens ? fmt::format("max_tokens: {} tokens", pool.tokens)
                                             : fmt::format("whole blocks of {} tokens", block)},
       {.cause = std::string(memory_cause::kBudget),
        .bytes = pool.pool_bytes - budgeted,
        .reason = fmt::format("tokens are budgeted with {} bytes and take {}", estimate,
                              memory.kv_bytes_per_token.value_or(0))}},
      memory);
}

void resolve_pool(const LayerContext& context, Memory& memory, std::vector<Step>& steps) {
  const std::optional<std::int64_t> device = context.request.device.usable_bytes();
  if (!device || !memory.weight_bytes || !memory.kv_bytes_per_token) return;
  const Arguments& arguments = context.arguments;
  const auto pool = kv_pool(
      {.total_bytes = *device,
       .peak_bytes = *memory.weight_bytes,
       .free_gpu_memory_fraction =
           arguments.number("kv_cache_config.free_gpu_memory_fraction").value_or(0.9),
       .max_tokens = arguments.integer("kv_cache_config.max_tokens"),
       .tokens_per_block = arguments.integer("kv_cache_config.tokens_per_block").value_or(32),
       .estimate_bytes_per_token = *memory.kv_bytes_per_token_estimate,
       .runtime_bytes_per_token = *memory.kv_bytes_per_token});
  if (!pool) {
    memory.notes.push_back("KV pool: " + pool.error().text());
    return;
  }
  append_steps(*pool, steps);
  if (pool->error) return;
  memory.kv_pool_bytes = pool->pool_bytes;
  explain_pool(context, *pool, memory);
  if (pool->pool_bytes > 0 && pool->pool_bytes > *device - *memory.weight_bytes) {
    append_engine_step(
        {.rule = "TRT-KV-POOL-OVER-MEMORY",
         .stage = Stage::kMemory,
         .verdict = Verdict::kRejected,
         .severity = Severity::kError,
         .candidate = context.request.device.id,
         .reason = fmt::format("{} of KV pool are allocated where {} are free after the weights",
                               format_bytes(pool->pool_bytes),
                               format_bytes(*device - *memory.weight_bytes))},
        steps);
  }
  memory.kv_pool_tokens =
      pool->blocks * arguments.integer("kv_cache_config.tokens_per_block").value_or(32);
  memory.notes.emplace_back(
      "the pool counts weights only: activations and the CUDA context lower it by what the "
      "profiling run measures");
}

void resolve_kv(const LayerContext& context, std::vector<LayerGroup>& groups, Memory& memory,
                std::vector<Step>& steps) {
  const auto unknown = [&](const std::string& reason) {
    append_engine_step({.rule = "TRT-KV-UNKNOWN",
                        .stage = Stage::kMemory,
                        .severity = Severity::kWarn,
                        .reason = reason},
                       steps);
  };
  const bool any_cache = std::any_of(groups.begin(), groups.end(), [](const LayerGroup& group) {
    return !group.kv.dtype.empty();
  });
  if (!any_cache) return;
  const auto geometry = kv_geometry(context.request.model, kv_deployment(context));
  if (!geometry) return unknown(geometry.error().text());
  const auto bytes = kv_bytes_per_token(*geometry);
  if (!bytes) return unknown(bytes.error().text());
  append_steps(*bytes, steps);
  memory.kv_bytes_per_token_estimate = bytes->estimate_bytes;
  if (bytes->error) return;
  memory.kv_bytes_per_token = bytes->runtime_total_bytes();
  share_among_groups(context, *geometry, groups);
  memory.sequence_tokens = context.max_seq_len;
  memory.kv_bytes_per_sequence = checked_mul(*memory.kv_bytes_per_token, context.max_seq_len);
  explain_token(context, *geometry, groups, memory);
  resolve_pool(context, memory, steps);
}

// Tokens of the pool's blocks that `batch` sequences of `length` tokens take; nothing where that
// does not fit 64 bits.
std::optional<std::int64_t> pooled_tokens(std::int64_t batch, std::int64_t length,
                                          std::int64_t tokens_per_block) {
  const auto rounded = checked_mul(ceil_div(length, tokens_per_block), tokens_per_block);
  return rounded ? checked_mul(*rounded, batch) : std::nullopt;
}

// Why the batch does not fit; empty where it does, or where the room for it is not known.
std::string batch_overflow(const LayerContext& context, const Memory& memory) {
  const std::optional<std::int64_t> device = context.request.device.usable_bytes();
  if (!memory.kv_bytes_per_batch) return "more bytes of KV than 64 bits count";
  const std::string bytes = format_bytes(*memory.kv_bytes_per_batch) + " of KV";
  if (memory.kv_pool_tokens) {
    const auto needed =
        pooled_tokens(*memory.batch_sequences, *memory.sequence_tokens,
                      context.arguments.integer("kv_cache_config.tokens_per_block").value_or(32));
    if (needed && *needed <= *memory.kv_pool_tokens) return {};
    return fmt::format("{}, the pool has {}", bytes, format_bytes(*memory.kv_pool_bytes));
  }
  if (!device || *memory.kv_bytes_per_batch <= *device) return {};
  return fmt::format("{}, the device has {}", bytes, format_bytes(*device));
}

void resolve_batch(const LayerContext& context, Memory& memory, std::vector<Step>& steps) {
  memory.batch_sequences = context.request.deployment.batch_size;
  if (!memory.batch_sequences || !memory.kv_bytes_per_token) return;
  if (memory.kv_bytes_per_sequence) {
    memory.kv_bytes_per_batch = checked_mul(*memory.kv_bytes_per_sequence, *memory.batch_sequences);
  }
  const std::string overflow = batch_overflow(context, memory);
  if (overflow.empty()) return;
  append_engine_step(
      {.rule = "TRT-KV-BATCH-OVER-POOL",
       .stage = Stage::kMemory,
       .verdict = Verdict::kNoted,
       .severity = Severity::kWarn,
       .candidate = "--batch-size",
       .reason = fmt::format("{} sequences of {} tokens take {}", *memory.batch_sequences,
                             *memory.sequence_tokens, overflow)},
      steps);
}

// Which dtype the engine keeps the recurrent state in was not read: float32 is assumed.
void resolve_state(const LayerContext& context, Memory& memory) {
  const auto state = memory::state_bytes(
      context.request.model, {.tp = context.arguments.integer("tensor_parallel_size").value_or(1)});
  if (!state) {
    memory.notes.push_back("recurrent state: " + state.error().text());
    return;
  }
  if (state->layers == 0) return;
  memory.state_bytes_per_sequence = state->bytes_per_sequence;
  memory.notes.push_back(
      fmt::format("{} layers keep a recurrent state of {} a sequence, counted in float32",
                  state->layers, format_bytes(state->bytes_per_sequence)));
}

}  // namespace

Memory resolve_memory(const LayerContext& context, std::vector<LayerGroup>& groups,
                      std::vector<Step>& steps) {
  Memory memory;
  resolve_weights(context, memory, steps);
  resolve_kv(context, groups, memory, steps);
  resolve_batch(context, memory, steps);
  resolve_state(context, memory);
  // Shape-only construction leaves nothing on the host; without it the whole model is there.
  memory.construction_host_bytes = 0;
  return memory;
}

}  // namespace kernelpath::engines::trtllm
