#include "engines/llamacpp/memory_accounts.h"

#include "base/checked.h"
#include "base/text.h"
#include "engines/llamacpp/saturating.h"
#include "engines/memory_account.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kernelpath::engines::llamacpp {
namespace {

using Row = MemoryAccount::Row;

std::int64_t cells_of(const Cache& cache) {
  return std::max<std::int64_t>(1, cache.cells * cache.streams);
}

// Bits of a number without its block's scales: the digit behind the q of "q8_0" or "iq4_nl".
std::int64_t bits_of(const checkpoint::GgmlType& type) {
  const std::size_t q = type.name.find('q');
  const bool blocks = type.quantized && q != std::string_view::npos && q + 1 < type.name.size();
  if (blocks) return type.name[q + 1] - '0';
  return type.block > 0 ? type.bytes * 8 / type.block : 0;
}

bool is_side_cache(const Cache& cache) {
  return cache.role == "indexer" || cache.role == "csa" || cache.role == "hca";
}

std::int64_t cell_bytes(const Cache& cache) {
  return saturating_sum(cache.k_total(), cache.v_total()) / cells_of(cache);
}

// Caches whose layers stand in no group of their own.
std::vector<Row> side_cache_rows(const MemoryPlan& plan) {
  std::vector<Row> out;
  for (const Cache& cache : plan.caches) {
    if (!is_side_cache(cache)) continue;
    const bool indexer = cache.role == "indexer";
    out.push_back({std::string(indexer ? memory_cause::kIndexer : memory_cause::kShape),
                   cell_bytes(cache),
                   indexer ? "keys of the sparse attention's indexer"
                           : "caches of compressed tokens beside the layers' own"});
  }
  return out;
}

void explain_token(const Request& request, const AttentionQuestion& question, Resolution& out) {
  TokenQuestion token;
  token.shape_reason = question.plan.v_transposed
                           ? "rows as the converted model has them; transposed values are as wide "
                             "as the widest layer's"
                           : "rows as the converted model has them";
  token.scales_reason = "scales of the blocks of a quantised type";
  token.rows = side_cache_rows(question.memory);
  std::int64_t all = 0;
  for (const Cache& cache : question.memory.caches) all = saturating_sum(all, cell_bytes(cache));
  token.rows.push_back({std::string(memory_cause::kElsewhere),
                        out.memory.kv_bytes_per_token.value_or(0) - all,
                        "layers on other devices"});
  account_for_token(request.model, token, out.layers, out.memory);
}

void explain_sequence(const AttentionQuestion& question, Memory& memory) {
  if (!memory.kv_bytes_per_token || !memory.sequence_tokens || !memory.kv_bytes_per_sequence) {
    return;
  }
  const std::int64_t tokens = *memory.sequence_tokens;
  const std::int64_t sequences = std::max<std::int64_t>(1, question.params.n_seq_max);
  std::vector<Row> rows;
  std::int64_t explained = 0;
  for (const Cache& cache : question.memory.caches) {
    if (cache.layers.empty()) continue;
    const auto plain = checked_mul(cell_bytes(cache), tokens);
    if (!plain) return;
    const bool fewer = cache.cells < tokens;
    const std::int64_t more = saturating_sum(cache.k_total(), cache.v_total()) / sequences - *plain;
    explained += more;
    rows.push_back({std::string(fewer ? memory_cause::kWindow : memory_cause::kSharedCells), more,
                    fewer
                        ? fmt::format("the {} cache has {} cells", cache.role, cache.cells)
                        : fmt::format("{} sequences share {} cells", sequences, cells_of(cache))});
  }
  const auto plain = checked_mul(*memory.kv_bytes_per_token, tokens);
  if (!plain) return;
  rows.push_back({std::string(memory_cause::kElsewhere),
                  *memory.kv_bytes_per_sequence - *plain - explained, "layers on other devices"});
  account_for_sequence(std::move(rows), memory);
}

// Weights as converted are 16-bit numbers whatever the checkpoint has.
void explain_weights(const Request& request, Memory& memory) {
  const auto ledger = memory::count_weights(request.model);
  if (request.model.gguf != nullptr || !ledger || !memory.weight_bytes) return;
  const auto plain = checked_mul(ledger->parameters, model_dtype_bytes(request.model));
  const auto converted = checked_mul(ledger->parameters, 2);
  if (!plain || !converted) return;
  AccountBuilder account("weight_bytes",
                         fmt::format("{} parameters in {}", ledger->parameters,
                                     request.model.dtype.value_or("16 bits")),
                         *plain);
  account.add(memory_cause::kStoredDtype, *converted - *plain, "16 bits as converted");
  account.add(memory_cause::kElsewhere, *memory.weight_bytes - *converted,
              "what other devices and the host keep");
  memory.accounts.push_back(account.finish(*memory.weight_bytes));
}

void explain_pool(const Request& request, const AttentionQuestion& question, Memory& memory) {
  const std::optional<std::int64_t> device = request.device.usable_bytes();
  if (!device || !memory.weight_bytes || !memory.kv_pool_bytes) return;
  account_for_pool(
      device,
      {{std::string(memory_cause::kAllocated),
        *memory.kv_pool_bytes - (*device - *memory.weight_bytes),
        fmt::format("cells for n_ctx {}, whatever room there is", question.plan.sizes.n_ctx)}},
      memory);
}

}  // namespace

KvParts cell_parts(const AttentionQuestion& question, const Cache& cache, std::size_t place) {
  const Hparams& hparams = question.model.hparams;
  const std::int64_t layer = cache.layers[place];
  const std::int64_t keys = hparams.n_embd_k_gqa(layer);
  std::int64_t values = 0;
  if (cache.v_bytes[place] > 0) {
    values = cache.v_transposed ? hparams.n_embd_v_gqa_max() : hparams.n_embd_v_gqa(layer);
  }
  const std::int64_t data =
      saturating_sum(saturating_product({keys, bits_of(*question.params.type_k)}) / 8,
                     saturating_product({values, bits_of(*question.params.type_v)}) / 8);
  const std::int64_t bytes =
      saturating_sum(cache.k_bytes[place], cache.v_bytes[place]) / cells_of(cache);
  return {.values = saturating_sum(keys, values),
          .data_bytes = data,
          .scale_bytes = bytes - data,
          .index_bytes = 0,
          .padding_bytes = 0};
}

void explain_memory(const Request& request, const AttentionQuestion& question, Resolution& out) {
  explain_weights(request, out.memory);
  explain_token(request, question, out);
  explain_sequence(question, out.memory);
  explain_pool(request, question, out.memory);
}

}  // namespace kernelpath::engines::llamacpp
