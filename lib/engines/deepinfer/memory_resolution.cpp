#include "base/checked.h"
#include "base/units.h"
#include "engines/deepinfer/resolve.h"
#include "engines/deepinfer/rules.h"
#include "engines/memory_account.h"
#include "engines/step_draft.h"

#include <fmt/format.h>

#include <utility>

namespace kernelpath::engines::deepinfer {
namespace {

void resolve_weights(const Request& request, const StartUp& run, Memory& memory,
                     std::vector<Step>& steps) {
  resolve_rank_weights(
      request,
      {.parallel = {.tp = 1, .pp = 1, .ep = run.parallel->expert, .attention_dp = true},
       .load_mtp = run.limits->draft_length != 0,
       .dtype = std::nullopt},
      {.unknown = "DI-WEIGHTS-UNKNOWN",
       .counted = "DI-WEIGHTS",
       .over_memory = "DI-WEIGHTS-OVER-MEMORY"},
      memory, memory_note(append_step, steps));
}

// Blocks after the weights and both copies of the state slots; the engine subtracts the peak of its
// profile run, of which only the weights are known beforehand.
void resolve_pool(const Request& request, const StartUp& run, double utilization, Memory& memory,
                  std::vector<Step>& steps) {
  const std::optional<std::int64_t> device = request.device.usable_bytes();
  const KvCache& kv = *run.kv;
  if (!device || !memory.weight_bytes || kv.bytes_per_block <= 0) return;
  const auto slots = checked_mul(2 * kv.num_state_slots, kv.state_bytes_per_slot);
  if (!slots) return;
  const auto share = static_cast<std::int64_t>(static_cast<double>(*device) * utilization);
  const std::int64_t left = share - *memory.weight_bytes - *slots;
  std::int64_t blocks = left > 0 ? left / kv.bytes_per_block : 0;
  blocks -= blocks % 2;
  memory.kv_pool_bytes = blocks * kv.bytes_per_block;
  memory.kv_pool_tokens = blocks * kTokensPerBlock;
  account_for_pool(
      device,
      {{std::string(memory_cause::kMemoryShare), share - *device,
        fmt::format("gpu_memory_utilization {} of the device", utilization)},
       {std::string(memory_cause::kStateSlots), -*slots,
        fmt::format("{} slots in two copies", kv.num_state_slots)},
       {std::string(memory_cause::kPages), *memory.kv_pool_bytes - left,
        left > 0 ? fmt::format("an even number of blocks of {} bytes", kv.bytes_per_block)
                 : "nothing is left"}},
      memory);
  memory.notes.emplace_back(
      "the pool counts weights and state slots only: what the profile run measures lowers it");
  const auto fits = check_block_count(blocks, *run.limits);
  if (fits) return;
  append_step({.rule = rule_id(fits.error()),
               .stage = Stage::kMemory,
               .verdict = Verdict::kRejected,
               .severity = Severity::kError,
               .candidate = request.device.id,
               .reason = fits.error().text},
              steps);
}

// Tokens of the window live in state slots, so that a layer without compression has no paged cache.
void explain_token(const Request& request, const KvCache& kv, const std::vector<LayerGroup>& groups,
                   Memory& memory) {
  std::int64_t in_groups = 0;
  for (const LayerGroup& group : groups) in_groups += group.kv_bytes_per_token;
  TokenQuestion question;
  question.shape_reason = "compressed tokens, in the layers that are their own source";
  question.scales_reason = "block scales beside the numbers";
  question.padding_reason = "a block is rounded up";
  question.rows = {{std::string(memory_cause::kPadding), *memory.kv_bytes_per_token - in_groups,
                    fmt::format("a block of {} tokens is rounded up", kv.block_size)}};
  account_for_token(request.model, question, groups, memory);
  account_for_sequence({}, memory);
}

}  // namespace

Memory resolve_memory(const Request& request, const Arguments& arguments, const StartUp& run,
                      Resolution& out) {
  Memory memory;
  std::vector<Step>& steps = out.steps;
  resolve_weights(request, run, memory, steps);
  const KvCache& kv = *run.kv;
  memory.kv_bytes_per_token = kv.bytes_per_block / kTokensPerBlock;
  append_step({.rule = "DI-KV-BLOCK",
               .stage = Stage::kMemory,
               .candidate = format_bytes(kv.bytes_per_block),
               .reason = fmt::format("{} bytes a block of {} tokens, {} of them padding",
                                     kv.bytes_per_block, kTokensPerBlock, kv.padding)},
              steps);
  append_step({.rule = "DI-STATE",
               .stage = Stage::kMemory,
               .candidate = format_bytes(kv.state_bytes_per_slot),
               .reason = fmt::format("{} slots of {} bytes, in two copies", kv.num_state_slots,
                                     kv.state_bytes_per_slot)},
              steps);
  append_step({.rule = "DI-KV-REPLICATED",
               .stage = Stage::kMemory,
               .reason = "no parallel size divides the cache"},
              steps);
  memory.sequence_tokens = run.limits->max_model_len;
  memory.kv_bytes_per_sequence = checked_mul(*memory.kv_bytes_per_token, *memory.sequence_tokens);
  memory.state_bytes_per_sequence = kv.state_bytes_per_slot;
  explain_token(request, kv, out.layers, memory);
  memory.batch_sequences = request.deployment.batch_size;
  if (memory.batch_sequences && memory.kv_bytes_per_sequence) {
    memory.kv_bytes_per_batch = checked_mul(*memory.kv_bytes_per_sequence, *memory.batch_sequences);
  }
  resolve_pool(request, run, arguments.gpu_memory_utilization, memory, steps);
  return memory;
}

}  // namespace kernelpath::engines::deepinfer
