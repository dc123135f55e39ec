#include "engines/vllm/memory_resolution.h"

#include "base/checked.h"
#include "base/units.h"
#include "engines/memory_account.h"
#include "engines/vllm/layer_groups.h"
#include "memory/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace kernelpath::engines::vllm {
namespace {

constexpr double kDefaultUtilization = 0.92;

std::int64_t blocks_of(std::int64_t tokens, std::int64_t block_size) {
  return block_size > 0 ? ceil_div(tokens, block_size) : 0;
}

// Blocks that one layer keeps of a sequence of `length` tokens.
// Source: v1/kv_cache_interface.py, max_memory_usage_bytes of each class.
std::int64_t sequence_blocks(const KvSpec& spec, const RunConfig& run, std::int64_t length) {
  const std::int64_t in_flight = run.max_num_batched_tokens;
  switch (spec.kind) {
    case SpecKind::kMamba: {
      const std::int64_t states = run.mamba_cache_mode == "align" ? 2 : 1;
      if (run.mamba_cache_mode == "all") return blocks_of(length, spec.block_size);
      return states + spec.speculative_blocks;
    }
    case SpecKind::kSliding:
    case SpecKind::kSlidingMla: {
      const std::int64_t kept = std::min(spec.window.value_or(length) - 1 + in_flight, length);
      return blocks_of(kept, spec.block_size) + 1;
    }
    case SpecKind::kChunked:
      return blocks_of(std::min(spec.chunk.value_or(length) + in_flight, length), spec.block_size);
    default:
      return blocks_of(ceil_div(length, run.dcp), spec.block_size);
  }
}

// Sums over the layers of one rank.
struct CacheSizes {
  std::int64_t token_bytes = 0;
  std::int64_t sequence_bytes = 0;
  std::int64_t state_bytes = 0;
  bool overflow = false;
  std::vector<MemoryAccount::Row> rows = {};  // what sequence_bytes is more or less than
                                              // token_bytes for every token
};

// What the blocks of a sequence take beside token_bytes for each of its tokens, and why. The caller
// has checked that the products fit.
MemoryAccount::Row sequence_row(const LayerCache& cache, const RunConfig& run,
                                std::int64_t length) {
  const KvSpec& spec = *cache.spec;
  const std::int64_t blocks = sequence_blocks(spec, run, length);
  const std::int64_t more = cache.page_bytes * blocks - token_bytes(cache) * length;
  switch (spec.kind) {
    case SpecKind::kMamba:
      return {std::string(memory_cause::kState), more,
              fmt::format("{} blocks a layer with a state", blocks)};
    case SpecKind::kSliding:
    case SpecKind::kSlidingMla:
      return {std::string(memory_cause::kWindow), more,
              fmt::format("a layer keeps its window and the tokens in flight: {} blocks of {}",
                          blocks, spec.block_size)};
    case SpecKind::kChunked:
      return {std::string(memory_cause::kWindow), more,
              fmt::format("a layer keeps its chunk and the tokens in flight: {} blocks of {}",
                          blocks, spec.block_size)};
    default:
      break;
  }
  if (run.dcp > 1) {
    return {std::string(memory_cause::kContextParallel), more,
            fmt::format("a sequence is divided among {} ranks", run.dcp)};
  }
  return {std::string(memory_cause::kPages), more,
          fmt::format("whole blocks of {} tokens", spec.block_size)};
}

CacheSizes count_cache(const RunResult& run, std::int64_t length) {
  CacheSizes out;
  for (const LayerCache& cache : run.cache->layers) {
    if (!cache.spec) continue;
    out.token_bytes += token_bytes(cache);
    if (cache.spec->is_state()) out.state_bytes += cache.unpadded_page_bytes;
    const auto bytes = checked_mul(cache.page_bytes, sequence_blocks(*cache.spec, run.run, length));
    const auto sum = bytes ? checked_add(out.sequence_bytes, *bytes) : std::nullopt;
    out.overflow = out.overflow || !sum || !checked_mul(token_bytes(cache), length);
    out.sequence_bytes = sum.value_or(0);
    if (!out.overflow) out.rows.push_back(sequence_row(cache, run.run, length));
  }
  return out;
}

// The share of layers of the stage that has most. Source: distributed/utils.py, get_pp_indices.
double largest_stage(const RunResult& run, std::int64_t pp) {
  const std::int64_t layers = run.view ? run.view->num_layers : 0;
  if (pp <= 1 || layers <= 0) return 1;
  return static_cast<double>(ceil_div(layers, pp)) / static_cast<double>(layers);
}

class Ledger {
 public:
  Ledger(const MemoryQuestion& question, StepWriter& steps) : question_(question), steps_(steps) {}

  Memory run() {
    count_weights();
    count_tokens();
    count_pool();
    count_batch();
    return std::move(memory_);
  }

 private:
  [[nodiscard]] const Arguments& arguments() const { return question_.arguments; }
  [[nodiscard]] std::optional<std::int64_t> device_bytes() const {
    return question_.request.device.usable_bytes();
  }

  void note(std::string_view rule, Severity severity, std::string candidate, std::string reason) {
    steps_.add({.rule = rule,
                .stage = Stage::kMemory,
                .verdict = severity == Severity::kError ? engines::Verdict::kRejected
                                                        : engines::Verdict::kNoted,
                .severity = severity,
                .candidate = std::move(candidate),
                .reason = std::move(reason)});
  }

  void count_weights() {
    const std::int64_t tp = arguments().integer("tensor_parallel_size").value_or(1);
    const std::int64_t dp = arguments().integer("data_parallel_size").value_or(1);
    const bool expert_parallel = arguments().flag("enable_expert_parallel");
    const auto ledger = memory::count_weights(
        question_.request.model,
        {.parallel = {.tp = tp,
                      .pp = arguments().integer("pipeline_parallel_size").value_or(1),
                      .ep = expert_parallel ? tp * dp : 1,
                      .attention_dp = false},
         .load_mtp = question_.run.run.speculative_method.ends_with("mtp"),
         .dtype = question_.run.run.dtype});
    if (!ledger) {
      return note("VLLM-WEIGHTS-UNKNOWN", Severity::kWarn, "", ledger.error().text());
    }
    account_for_weights(question_.request.model, *ledger,
                        question_.run.run.speculative_method.ends_with("mtp"), memory_);
    add_draft(tp);
    note("VLLM-WEIGHTS", Severity::kInfo, format_bytes(*memory_.weight_bytes),
         weights_text(*ledger, memory_));
    const hardware::Device& device = question_.request.device;
    const auto over = weights_over_memory(*memory_.weight_bytes, device);
    if (over) note("VLLM-WEIGHTS-OVER-MEMORY", Severity::kError, device.id, *over);
  }

  // The weights of a draft with a checkpoint of its own.
  void add_draft(std::int64_t tp) {
    const auto& draft = question_.run.draft;
    if (!draft || draft->shares_checkpoint) return;
    const auto ledger = memory::count_weights(
        draft->model,
        {.parallel = {.tp = tp, .attention_dp = false}, .dtype = question_.run.run.dtype});
    if (!ledger) {
      note("VLLM-WEIGHTS-UNKNOWN", Severity::kWarn, draft->model.name, ledger.error().text());
      return;
    }
    memory_.notes.push_back(
        fmt::format("weights: {} of them are the draft's", format_bytes(ledger->rank_bytes)));
    *memory_.weight_bytes += ledger->rank_bytes;
    for (MemoryAccount& account : memory_.accounts) {
      if (account.figure != "weight_bytes") continue;
      account.rows.push_back({.cause = std::string(memory_cause::kDraft),
                              .bytes = ledger->rank_bytes,
                              .reason = "a checkpoint of its own"});
      account.total_bytes = *memory_.weight_bytes;
    }
  }

  void count_tokens() {
    const RunResult& run = question_.run;
    if (!run.cache || run.layers.empty() || run.run.max_model_len <= 0) return;
    const CacheSizes sizes = count_cache(run, run.run.max_model_len);
    const double share =
        largest_stage(run, arguments().integer("pipeline_parallel_size").value_or(1));
    if (share < 1) {
      memory_.notes.emplace_back("the cache is that of the pipeline stage with most layers");
    }
    const auto staged = [share](std::int64_t bytes) {
      return static_cast<std::int64_t>(static_cast<double>(bytes) * share);
    };
    memory_.kv_bytes_per_token = staged(sizes.token_bytes);
    memory_.sequence_tokens = run.run.max_model_len;
    if (!sizes.overflow) memory_.kv_bytes_per_sequence = staged(sizes.sequence_bytes);
    if (sizes.state_bytes > 0) {
      memory_.state_bytes_per_sequence = staged(sizes.state_bytes);
    }
    explain_tokens(sizes);
  }

  void explain_tokens(const CacheSizes& sizes) {
    TokenQuestion question{.ranks = arguments().integer("tensor_parallel_size").value_or(1)};
    question.shape_reason = "what the built layers keep of a token";
    question.scales_reason = "scales and norms beside the numbers";
    question.padding_reason = "a page is as large as the group's largest, or aligned";
    const std::string stages = "the pipeline stage with most layers";
    question.rows = {{std::string(memory_cause::kStages),
                      memory_.kv_bytes_per_token.value_or(0) - sizes.token_bytes, stages}};
    account_for_token(question_.request.model, question, question_.groups, memory_);
    const std::int64_t length = *memory_.sequence_tokens;
    if (sizes.overflow || !checked_mul(sizes.token_bytes, length)) return;
    std::vector<MemoryAccount::Row> rows = sizes.rows;
    // The rows are those of all stages.
    const std::int64_t rows_of_stage =
        *memory_.kv_bytes_per_sequence - *memory_.kv_bytes_per_token * length;
    const std::int64_t rows_of_all = sizes.sequence_bytes - sizes.token_bytes * length;
    rows.push_back({std::string(memory_cause::kStages), rows_of_stage - rows_of_all, stages});
    account_for_sequence(std::move(rows), memory_);
  }

  // What is left of the engine's share of the device after the weights.
  void count_pool() {
    if (!device_bytes() || !memory_.weight_bytes || !memory_.kv_bytes_per_sequence) return;
    const auto stated = arguments().integer("kv_cache_memory_bytes");
    const double utilization =
        arguments().number("gpu_memory_utilization").value_or(kDefaultUtilization);
    const auto share =
        static_cast<std::int64_t>(static_cast<double>(*device_bytes()) * utilization);
    const std::int64_t pool = stated ? *stated : share - *memory_.weight_bytes;
    if (!stated && *memory_.weight_bytes > *device_bytes()) return;  // said already
    if (pool <= 0) {
      return note(
          "VLLM-KV-NO-ROOM", Severity::kError, question_.request.device.id,
          fmt::format("gpu_memory_utilization {} is {}, the weights of a rank take {}", utilization,
                      format_bytes(share), format_bytes(*memory_.weight_bytes)));
    }
    memory_.kv_pool_bytes = pool;
    account_for_pool(
        device_bytes(),
        {{std::string(stated ? memory_cause::kStated : memory_cause::kMemoryShare),
          pool - (*device_bytes() - *memory_.weight_bytes),
          stated ? "kv_cache_memory_bytes"
                 : fmt::format("gpu_memory_utilization {} of the device", utilization)}},
        memory_);
    if (*memory_.kv_bytes_per_sequence == 0) return;
    // As the engine reports it: sequences of the context length that fit, times that length.
    const double sequences =
        static_cast<double>(pool) / static_cast<double>(*memory_.kv_bytes_per_sequence);
    memory_.kv_pool_tokens =
        static_cast<std::int64_t>(sequences * static_cast<double>(*memory_.sequence_tokens));
    note("VLLM-KV-POOL", Severity::kInfo, format_bytes(pool),
         fmt::format("{} tokens, {:.2f} sequences of {} tokens", *memory_.kv_pool_tokens, sequences,
                     *memory_.sequence_tokens));
    memory_.notes.emplace_back(
        "the pool counts weights only: activations, graphs and the CUDA context lower it by what "
        "the profiling run measures");
    if (sequences < 1) {
      note("VLLM-KV-LENGTH-OVER-POOL", Severity::kError, "max_model_len",
           fmt::format("one sequence of {} tokens takes {}, the cache has {}",
                       *memory_.sequence_tokens, format_bytes(*memory_.kv_bytes_per_sequence),
                       format_bytes(pool)));
    }
  }

  void count_batch() {
    memory_.batch_sequences = question_.request.deployment.batch_size;
    if (!memory_.batch_sequences || !memory_.kv_bytes_per_sequence) return;
    memory_.kv_bytes_per_batch =
        checked_mul(*memory_.kv_bytes_per_sequence, *memory_.batch_sequences);
    if (!memory_.kv_pool_bytes) return;
    const bool fits =
        memory_.kv_bytes_per_batch && *memory_.kv_bytes_per_batch <= *memory_.kv_pool_bytes;
    if (fits) return;
    note("VLLM-KV-BATCH-OVER-POOL", Severity::kWarn, "--batch-size",
         fmt::format("{} sequences of {} tokens take {}, the cache has {}",
                     *memory_.batch_sequences, *memory_.sequence_tokens,
                     memory_.kv_bytes_per_batch ? format_bytes(*memory_.kv_bytes_per_batch)
                                                : "more bytes than 64 bits count",
                     format_bytes(*memory_.kv_pool_bytes)));
  }

  const MemoryQuestion& question_;
  StepWriter& steps_;
  Memory memory_;
};

}  // namespace

Memory resolve_memory(const MemoryQuestion& question, StepWriter& steps) {
  return Ledger(question, steps).run();
}

}  // namespace kernelpath::engines::vllm
