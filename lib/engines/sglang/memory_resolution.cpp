#include "base/checked.h"
#include "base/rounding.h"
#include "base/units.h"
#include "engines/memory_account.h"
#include "engines/sglang/attention_ranks.h"
#include "engines/sglang/rule_ids.h"
#include "engines/sglang/run.h"
#include "engines/step_draft.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kernelpath::engines::sglang {
namespace {

// The user's, or the engine's estimate; nothing where the device's memory is unknown.
std::optional<double> static_fraction(const Launch& launch) {
  const json::Value& value = launch.arguments().value("mem_fraction_static");
  if (!value.is_number()) return std::nullopt;
  return value.as_double();
}

class Ledger {
 public:
  Ledger(const Run& run, std::vector<Step>& steps) : run_(run), steps_(steps) {}

  Memory count(const std::vector<LayerGroup>& groups) {
    count_weights();
    count_tokens(groups);
    count_pool();
    count_batch();
    return std::move(memory_);
  }

 private:
  [[nodiscard]] const Launch& launch() const { return run_.launch; }
  [[nodiscard]] std::optional<std::int64_t> device_bytes() const {
    return run_.request.device.usable_bytes();
  }

  void note(std::string_view rule, Severity severity, std::string candidate, std::string reason) {
    memory_note(append_step, steps_)(rule, severity, std::move(candidate), std::move(reason));
  }

  void count_weights() {
    resolve_rank_weights(
        run_.request,
        {.parallel = {.tp = launch().size("tp_size"),
                      .pp = launch().size("pp_size"),
                      .ep = launch().size("ep_size"),
                      .attention_dp = launch().attention_dp()},
         .load_mtp = launch().text("speculative_algorithm") == "EAGLE",
         .dtype = launch().model().dtype},
        {.unknown = kWeightsUnknown, .counted = kWeights, .over_memory = kWeightsOverMemory},
        memory_, memory_note(append_step, steps_));
  }

  // The share of layers of the stage that has most.
  [[nodiscard]] double largest_stage() const {
    const std::int64_t stages = launch().size("pp_size");
    const auto layers = static_cast<std::int64_t>(run_.request.model.layers.size());
    if (stages <= 1 || layers == 0) return 1;
    return static_cast<double>(ceil_div(layers, stages)) / static_cast<double>(layers);
  }

  void count_tokens(const std::vector<LayerGroup>& groups) {
    std::int64_t sum = 0;
    for (const LayerGroup& group : groups) sum += group.kv_bytes_per_token;
    if (launch().model().is_deepseek_v4) {
      memory_.notes.emplace_back("the compressed cache of DeepSeek-V4 is not counted");
      return;
    }
    const double share = largest_stage();
    if (share < 1) {
      memory_.notes.emplace_back("the cache is that of the pipeline stage with most layers");
    }
    memory_.kv_bytes_per_token = static_cast<std::int64_t>(static_cast<double>(sum) * share);
    memory_.sequence_tokens = launch().model().context_len;
    const std::int64_t page = std::max<std::int64_t>(launch().integer("page_size").value_or(1), 1);
    const std::int64_t tokens = round_up(launch().model().context_len, page);
    const std::int64_t kept = ceil_div(tokens, launch().size("dcp_size"));
    memory_.kv_bytes_per_sequence = checked_mul(*memory_.kv_bytes_per_token, kept);
    explain_tokens(groups, sum);
    const std::int64_t bytes = *memory_.kv_bytes_per_token;
    if (!checked_mul(bytes, tokens)) return;
    account_for_sequence(
        {{std::string(memory_cause::kPages), bytes * (tokens - launch().model().context_len),
          fmt::format("whole pages of {} tokens", page)},
         {std::string(memory_cause::kContextParallel), bytes * (kept - tokens),
          fmt::format("a sequence is divided among {} ranks", launch().size("dcp_size"))}},
        memory_);
  }

  void explain_tokens(const std::vector<LayerGroup>& groups, std::int64_t sum) {
    TokenQuestion question{.ranks = attention_ranks(launch())};
    question.shape_reason = "the engine's own reading of the layer's heads";
    question.scales_reason = "block scales beside the numbers";
    question.rows = {{std::string(memory_cause::kStages),
                      memory_.kv_bytes_per_token.value_or(0) - sum,
                      "the pipeline stage with most layers"}};
    account_for_token(run_.request.model, question, groups, memory_);
  }

  void count_pool() {
    if (!device_bytes() || !memory_.weight_bytes || !memory_.kv_bytes_per_token) return;
    const auto fraction = static_fraction(launch());
    if (!fraction) return;
    const auto share = static_cast<std::int64_t>(static_cast<double>(*device_bytes()) * *fraction);
    const std::int64_t pool = share - *memory_.weight_bytes;
    if (pool <= 0) {
      return note(kKvNoRoom, Severity::kError, run_.request.device.id,
                  fmt::format("mem_fraction_static {} is {}, the weights of a rank take {}",
                              *fraction, format_bytes(share), format_bytes(*memory_.weight_bytes)));
    }
    memory_.kv_pool_bytes = pool;
    account_for_pool(
        device_bytes(),
        {{std::string(memory_cause::kMemoryShare), pool - (*device_bytes() - *memory_.weight_bytes),
          fmt::format("mem_fraction_static {} of the device", *fraction)}},
        memory_);
    if (*memory_.kv_bytes_per_token == 0) return;
    memory_.kv_pool_tokens = pool / *memory_.kv_bytes_per_token * launch().size("dcp_size");
    note(kKvPool, Severity::kInfo, format_bytes(pool),
         fmt::format("{} tokens at mem_fraction_static {}", *memory_.kv_pool_tokens, *fraction));
    if (launch().model().linear_kind != LinearKind::kNone) {
      memory_.notes.emplace_back("states of linear layers share the pool and are not counted");
    }
    const bool fits = memory_.kv_bytes_per_sequence && *memory_.kv_bytes_per_sequence <= pool;
    if (!fits && !launch().model().is_hybrid_swa) {
      note(kKvLengthOverPool, Severity::kWarn, "context_length",
           fmt::format("one sequence of {} tokens does not fit {} tokens", *memory_.sequence_tokens,
                       *memory_.kv_pool_tokens));
    }
  }

  void count_batch() {
    memory_.batch_sequences = run_.request.deployment.batch_size;
    if (!memory_.batch_sequences || !memory_.kv_bytes_per_sequence) return;
    memory_.kv_bytes_per_batch =
        checked_mul(*memory_.kv_bytes_per_sequence, *memory_.batch_sequences);
    if (!memory_.kv_pool_bytes) return;
    if (memory_.kv_bytes_per_batch && *memory_.kv_bytes_per_batch <= *memory_.kv_pool_bytes) return;
    note(kKvBatchOverPool, Severity::kWarn, "--batch-size",
         fmt::format("{} sequences of {} tokens do not fit {}", *memory_.batch_sequences,
                     *memory_.sequence_tokens, format_bytes(*memory_.kv_pool_bytes)));
  }

  const Run& run_;
  std::vector<Step>& steps_;
  Memory memory_;
};

}  // namespace

Memory resolve_memory(const Run& run, const std::vector<LayerGroup>& groups,
                      std::vector<Step>& steps) {
  return Ledger(run, steps).count(groups);
}

}  // namespace kernelpath::engines::sglang
