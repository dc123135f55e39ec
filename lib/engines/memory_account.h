#pragma once

#include "config/model_config.h"
#include "engines/request.h"
#include "engines/resolution.h"
#include "hardware/device.h"
#include "memory/weights.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines {

// Causes of MemoryAccount::Row, in the order in which they stand. What the plain figure counts and
// an engine's does not is made of these and nothing else; kNotExplained is there so that an account
// sums up even where this program has a gap, and no test model has it.
namespace memory_cause {
inline constexpr std::string_view kNoCache = "layers without a cache";
inline constexpr std::string_view kRankShare = "share of a rank";
inline constexpr std::string_view kReplicated = "KV heads replicated";
inline constexpr std::string_view kLatentReplicated = "latent on every rank";
inline constexpr std::string_view kShape = "shape of the cache";
inline constexpr std::string_view kDtype = "KV dtype";
inline constexpr std::string_view kScales = "scales";
inline constexpr std::string_view kIndexer = "indexer keys";
inline constexpr std::string_view kPadding = "padding";
inline constexpr std::string_view kDraft = "draft layers";
inline constexpr std::string_view kUniform = "layers counted alike";
inline constexpr std::string_view kStages = "pipeline stages";
inline constexpr std::string_view kElsewhere = "other devices";
inline constexpr std::string_view kWindow = "window caches";
inline constexpr std::string_view kState = "recurrent states";
inline constexpr std::string_view kPages = "whole pages";
inline constexpr std::string_view kContextParallel = "context parallelism";
inline constexpr std::string_view kSharedCells = "cells shared by sequences";
inline constexpr std::string_view kMemoryShare = "share of the device";
inline constexpr std::string_view kStated = "stated size";
inline constexpr std::string_view kAllocated = "allocated for the context";
inline constexpr std::string_view kBudget = "budget per token";
inline constexpr std::string_view kStateSlots = "state slots";
inline constexpr std::string_view kStoredDtype = "dtype of the weights";
inline constexpr std::string_view kNotExplained = "not explained";
}  // namespace memory_cause

// Every cause, in that order.
std::span<const std::string_view> memory_causes();

// Sums up the rows that are not 0, beside a plain figure; what is missing to `total_bytes` is not
// explained.
class AccountBuilder {
 public:
  AccountBuilder(std::string figure, std::string plain, std::int64_t plain_bytes);
  // What of the same cause was added before grows by it.
  AccountBuilder& add(std::string_view cause, std::int64_t bytes, std::string reason);
  [[nodiscard]] MemoryAccount finish(std::int64_t total_bytes);

 private:
  MemoryAccount account_;
};

// What an engine knows of its KV bytes beside the groups of its resolution.
struct TokenQuestion {
  std::int64_t ranks = 1;          // that KV heads are divided among
  std::string shape_reason = {};   // why a layer keeps more or fewer values than the model has
  std::string scales_reason = {};  // what the scales belong to
  std::string padding_reason = {};
  std::vector<MemoryAccount::Row> rows = {};  // of the engine's own, after those of the layers
};

// The account of kv_bytes_per_token: the plain figure is what keys and values (or the latent) of
// every attention layer take in the model's own dtype, on one device. Adds nothing where the
// figure is unknown, where the model states no layers (a GGUF file), or where sizes do not fit.
void account_for_token(const config::ModelConfig& model, const TokenQuestion& question,
                       const std::vector<LayerGroup>& groups, Memory& memory);

// The account of kv_bytes_per_sequence: the plain figure is kv_bytes_per_token for every token.
void account_for_sequence(std::vector<MemoryAccount::Row> rows, Memory& memory);

// The account of kv_pool_bytes: the plain figure is what the weights leave of the device. Adds
// nothing where one of them is unknown, or nothing is left.
void account_for_pool(std::optional<std::int64_t> device_bytes,
                      std::vector<MemoryAccount::Row> rows, Memory& memory);

// The weights of a rank: weight_bytes, weight_source, what the ledger notes, and the account, whose
// plain figure is every parameter in the model's own dtype, on one device. `loads_draft`: the
// layers that draft tokens are loaded too.
void account_for_weights(const config::ModelConfig& model, const memory::WeightLedger& ledger,
                         bool loads_draft, Memory& memory);

// The rules of an engine that its weights go by.
struct WeightRules {
  std::string_view unknown;      // they cannot be counted
  std::string_view counted;      // so many
  std::string_view over_memory;  // more than the device has
};
// Appends a step to an engine's resolution: a rule, what it is about, and why.
using NoteStep = std::function<void(std::string_view rule, Severity severity, std::string candidate,
                                    std::string reason)>;
// Counts the weights of a rank, accounts for them, and notes what was found.
void resolve_rank_weights(const Request& request, const memory::WeightOptions& options,
                          const WeightRules& rules, Memory& memory, const NoteStep& note);

// What the steps of a rank's weights say: "7241732096 parameters, from the config".
std::string weights_text(const memory::WeightLedger& ledger, const Memory& memory);
// Why the weights of a rank do not fit the device; nothing where they do, or where nobody knows.
std::optional<std::string> weights_over_memory(std::int64_t rank_bytes,
                                               const hardware::Device& device);

// Adds up what two groups keep.
void add_parts(KvParts& sum, const KvParts& more);
// All parts but the count of values.
std::int64_t bytes_of(const KvParts& parts);

// Bytes of a number in the model's own dtype; 2 where nobody says.
std::int64_t model_dtype_bytes(const config::ModelConfig& model);

}  // namespace kernelpath::engines
