#include "base/checked.h"
#include "base/units.h"
#include "engines/kernelpath/resolve.h"
#include "engines/kernelpath/rules.h"
#include "engines/memory_account.h"
#include "engines/step_draft.h"

#include <fmt/format.h>

#include <utility>

namespace kernelpath::engines::kernelpath {
namespace {

void resolve_weights(const Request& request, const Launch& launch, Memory& memory,
                     std::vector<Step>& steps) {
  resolve_rank_weights(request, {.parallel = {.tp = launch.tp}, .dtype = std::nullopt},
                       {.unknown = "KP-WEIGHTS-UNKNOWN",
                        .counted = "KP-WEIGHTS",
                        .over_memory = "KP-WEIGHTS-OVER-MEMORY"},
                       memory, memory_note(append_step, steps));
}

std::optional<std::int64_t> sequence_tokens(const Request& request) {
  if (request.deployment.max_model_len) return request.deployment.max_model_len;
  return request.model.max_position_embeddings.value;
}

void resolve_sequence(const Request& request, const Launch& launch, Memory& memory) {
  memory.sequence_tokens = sequence_tokens(request);
  memory.batch_sequences = request.deployment.batch_size;
  if (!memory.sequence_tokens) return;
  // A rank of --dcp keeps its share of the pages.
  const std::int64_t tokens = ceil_div(*memory.sequence_tokens, launch.dcp);
  const auto rounded = checked_mul(ceil_div(tokens, launch.page_size), launch.page_size);
  if (!rounded) return;
  const std::int64_t in_pages = *rounded;
  memory.kv_bytes_per_sequence = checked_mul(*memory.kv_bytes_per_token, in_pages);
  if (!memory.kv_bytes_per_sequence) return;
  const auto plain = checked_mul(*memory.kv_bytes_per_token, *memory.sequence_tokens);
  if (!plain) return;
  account_for_sequence(
      {{std::string(memory_cause::kPages), (in_pages - tokens) * *memory.kv_bytes_per_token,
        fmt::format("whole pages of {} tokens", launch.page_size)},
       {std::string(memory_cause::kContextParallel),
        (tokens - *memory.sequence_tokens) * *memory.kv_bytes_per_token,
        fmt::format("{} ranks share a sequence's tokens", launch.dcp)}},
      memory);
  if (!memory.batch_sequences) return;
  memory.kv_bytes_per_batch = checked_mul(*memory.kv_bytes_per_sequence, *memory.batch_sequences);
}

}  // namespace

KvParts token_parts(const OwnLayers& layers, attention::DataType type) {
  KvParts out;
  if (!layers.attention) return out;
  out.values = layers.kv_heads * (layers.k_dim + layers.v_dim);
  out.data_bytes = attention::data_bytes(type, out.values);
  out.scale_bytes = attention::block_scale_bytes(type, out.values);
  out.index_bytes = attention::data_bytes(type, layers.index_dim) +
                    attention::block_scale_bytes(type, layers.index_dim);
  return out;
}

Memory resolve_memory(const Request& request, const Launch& launch, const OwnModelLayers& layers,
                      Resolution& out) {
  Memory memory;
  resolve_weights(request, launch, memory, out.steps);
  std::int64_t token_bytes = 0;
  std::int64_t state_bytes = 0;
  for (const LayerGroup& group : out.layers) token_bytes += group.kv_bytes_per_token;
  for (const OwnLayers& group : layers.groups) {
    state_bytes += group.state_bytes * static_cast<std::int64_t>(group.layers.size());
  }
  memory.kv_bytes_per_token = token_bytes;
  append_step({.rule = "KP-KV",
               .stage = Stage::kMemory,
               .candidate = format_bytes(token_bytes),
               .reason = fmt::format("{} bytes a token in pages of {} tokens, {}", token_bytes,
                                     launch.page_size, short_name(launch.kv_type))},
              out.steps);
  if (state_bytes > 0) {
    memory.state_bytes_per_sequence = state_bytes;
    append_step({.rule = "KP-STATE",
                 .stage = Stage::kMemory,
                 .candidate = format_bytes(state_bytes),
                 .reason = fmt::format("{} bytes a sequence, float32", state_bytes)},
                out.steps);
  }
  TokenQuestion question;
  question.ranks = launch.tp;
  question.shape_reason = "rows as the layers read them";
  question.scales_reason = "one e4m3 scale for 16 values";
  account_for_token(request.model, question, out.layers, memory);
  resolve_sequence(request, launch, memory);
  return memory;
}

}  // namespace kernelpath::engines::kernelpath
