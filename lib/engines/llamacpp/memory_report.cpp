#include "engines/llamacpp/memory_report.h"

#include "base/units.h"
#include "checkpoint/gguf.h"
#include "engines/llamacpp/rules.h"
#include "memory/weights.h"

#include <fmt/format.h>

#include <algorithm>

namespace kernelpath::engines::llamacpp {
namespace {

constexpr std::int64_t kConvertedBytes = 2;  // of a parameter: f16 or bf16

void report_weights(const MemoryContext& context, Resolution& out) {
  Memory& memory = out.memory;
  const config::ModelConfig& model = context.request.model;
  if (model.gguf != nullptr) {
    memory.weight_bytes = model.gguf->tensor_bytes;
    memory.weight_source = "GGUF tensor table";
  } else {
    const auto ledger = memory::count_weights(model);
    if (!ledger) {
      append_step({.rule = "LCPP-WEIGHTS-UNKNOWN",
                   .stage = Stage::kMemory,
                   .severity = Severity::kWarn,
                   .reason = ledger.error().text()},
                  out.steps);
      return;
    }
    memory.weight_bytes = saturating_product({ledger->parameters, kConvertedBytes});
    memory.weight_source = "geometry, 16 bits a parameter (estimate)";
    memory.notes.emplace_back(
        "weights: as converted, unquantised; a quantised GGUF file states its own size");
  }
  append_step({.rule = "LCPP-WEIGHTS",
               .stage = Stage::kMemory,
               .candidate = format_bytes(*memory.weight_bytes),
               .reason = "from " + memory.weight_source},
              out.steps);
}

void report_cache(const MemoryContext& context, Memory& memory) {
  const MemoryPlan& plan = context.question.memory;
  const ContextSizes& sizes = context.question.plan.sizes;
  const std::int64_t sequences = std::max<std::int64_t>(1, context.question.params.n_seq_max);
  memory.sequence_tokens = sizes.n_ctx_seq;
  if (!plan.caches.empty()) {
    const std::int64_t total = plan.kv_bytes();
    std::int64_t per_token = 0;
    for (const Cache& cache : plan.caches) {
      const std::int64_t cells = std::max<std::int64_t>(1, cache.cells * cache.streams);
      per_token += saturating_sum(cache.k_total(), cache.v_total()) / cells;
    }
    memory.kv_bytes_per_token = per_token;
    memory.kv_pool_bytes = total;
    memory.kv_pool_tokens = sizes.n_ctx;
    memory.kv_bytes_per_sequence = total / sequences;
    const bool windowed = std::ranges::any_of(plan.caches, [&](const Cache& cache) {
      return cache.cells != sizes.n_ctx_seq && !cache.layers.empty();
    });
    if (windowed) {
      memory.notes.emplace_back(
          "a cell of every cache; those of sliding or compressed layers have fewer cells than "
          "the context has tokens");
    }
  }
  if (plan.state) memory.state_bytes_per_sequence = plan.state->bytes() / sequences;
  if (plan.compressor_bytes > 0) {
    memory.notes.push_back(
        fmt::format("compressor states: {}", format_bytes(plan.compressor_bytes)));
  }
  if (!context.request.deployment.batch_size) return;
  memory.batch_sequences = sequences;
  if (!plan.caches.empty()) memory.kv_bytes_per_batch = plan.kv_bytes();
}

void check_device(const MemoryContext& context, Resolution& out) {
  const std::optional<std::int64_t> device = context.request.device.usable_bytes();
  if (!device || !out.memory.weight_bytes) return;
  const MemoryPlan& plan = context.question.memory;
  std::int64_t needed = saturating_sum(*out.memory.weight_bytes, plan.kv_bytes());
  if (plan.state) needed = saturating_sum(needed, plan.state->bytes());
  needed = saturating_sum(needed, plan.compressor_bytes);
  if (needed <= *device) return;
  append_step({.rule = "LCPP-OVER-MEMORY",
               .stage = Stage::kMemory,
               .severity = Severity::kWarn,
               .candidate = context.request.device.id,
               .reason = fmt::format("{} are needed, {} are usable", format_bytes(needed),
                                     format_bytes(*device))},
              out.steps);
}

}  // namespace

void report_memory(const MemoryContext& context, Resolution& out) {
  report_weights(context, out);
  report_cache(context, out.memory);
  check_device(context, out);
}

}  // namespace kernelpath::engines::llamacpp
