#include "engines/memory_account.h"

#include "base/checked.h"
#include "base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace kernelpath::engines {
namespace {

using Row = MemoryAccount::Row;

constexpr auto kCauses = std::to_array<std::string_view>({
    memory_cause::kNoCache,         memory_cause::kRankShare,
    memory_cause::kReplicated,      memory_cause::kLatentReplicated,
    memory_cause::kShape,           memory_cause::kDtype,
    memory_cause::kScales,          memory_cause::kIndexer,
    memory_cause::kPadding,         memory_cause::kDraft,
    memory_cause::kUniform,         memory_cause::kStages,
    memory_cause::kElsewhere,       memory_cause::kWindow,
    memory_cause::kState,           memory_cause::kPages,
    memory_cause::kContextParallel, memory_cause::kSharedCells,
    memory_cause::kMemoryShare,     memory_cause::kStated,
    memory_cause::kAllocated,       memory_cause::kBudget,
    memory_cause::kStateSlots,      memory_cause::kStoredDtype,
    memory_cause::kNotExplained,
});

bool is_attention(config::LayerKind kind) {
  using enum config::LayerKind;
  return kind == kFull || kind == kSliding || kind == kChunked || kind == kSparse || kind == kCross;
}

// Numbers that a token has in one layer, by the model's own shape: of all heads, and of those that
// one of `ranks` keeps whole.
struct LayerValues {
  std::int64_t all = 0;
  std::int64_t rank = 0;
};

// Sizes that no model has: beyond them nothing is counted.
constexpr std::int64_t kMostValues = std::int64_t{1} << 40;

LayerValues values_of(const config::ModelConfig& model, const config::Layer& layer,
                      std::int64_t ranks) {
  if (!is_attention(layer.kind)) return {};
  const std::int64_t caches = std::max<std::int64_t>(model.attentions_per_layer, 1);
  if (model.mla) {
    const std::int64_t width =
        std::clamp<std::int64_t>(model.mla->kv_lora_rank.value_or(0), 0, kMostValues) +
        std::clamp<std::int64_t>(model.mla->qk_rope_head_dim.value_or(0), 0, kMostValues);
    return {.all = width * caches, .rank = width * caches};
  }
  const std::int64_t heads = std::clamp<std::int64_t>(layer.num_key_value_heads, 0, kMostValues);
  const std::int64_t width = std::clamp<std::int64_t>(layer.head_dim, 0, kMostValues) +
                             std::clamp<std::int64_t>(layer.v_head_dim, 0, kMostValues);
  const auto all = checked_mul(heads, width);
  if (!all || *all > kMostValues) return {};
  return {.all = *all * caches, .rank = ceil_div(heads, ranks) * width * caches};
}

// Sums over groups of layers.
struct Totals {
  KvParts parts;
  std::int64_t draft_bytes = 0;
  std::set<std::int64_t> cached;  // layers of the model
};

Totals sum_up(const std::vector<LayerGroup>& groups, std::int64_t layers) {
  Totals out;
  for (const LayerGroup& group : groups) {
    const bool extra = group.draft || (!group.layers.empty() && group.layers.front() >= layers);
    if (extra) {
      out.draft_bytes += group.kv_bytes_per_token;
      continue;
    }
    add_parts(out.parts, group.kv_parts);
    if (group.kv_parts.data_bytes == 0) continue;
    out.cached.insert(group.layers.begin(), group.layers.end());
  }
  return out;
}

// The model's own values, by whether the engine keeps a cache for their layer.
struct ModelValues {
  LayerValues cached;
  std::int64_t uncached = 0;
  std::size_t uncached_layers = 0;
  bool any_shared = false;
};

ModelValues model_values(const config::ModelConfig& model, std::int64_t ranks,
                         const std::set<std::int64_t>& cached) {
  ModelValues out;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const LayerValues values = values_of(model, model.layers[i], ranks);
    if (values.all == 0) continue;
    if (cached.contains(static_cast<std::int64_t>(i))) {
      out.cached.all += values.all;
      out.cached.rank += values.rank;
      continue;
    }
    out.uncached += values.all;
    ++out.uncached_layers;
    out.any_shared = out.any_shared || model.layers[i].shares_kv;
  }
  return out;
}

std::string dtypes_text(const std::vector<LayerGroup>& groups) {
  std::vector<std::string> names;
  for (const LayerGroup& group : groups) {
    const std::string& name = group.kv.dtype;
    const bool known = name.empty() || std::ranges::find(names, name) != names.end();
    if (!known) names.push_back(name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string model_dtype_text(const config::ModelConfig& model) {
  return model.dtype.value_or("16 bits, as nobody says");
}

void append_layer_rows(const config::ModelConfig& model, const TokenQuestion& question,
                       const std::vector<LayerGroup>& groups, const Totals& totals,
                       AccountBuilder& out) {
  const ModelValues values = model_values(model, question.ranks, totals.cached);
  const std::int64_t unit = model_dtype_bytes(model);
  out.add(memory_cause::kNoCache, -values.uncached * unit,
          fmt::format("{} attention layers {}", values.uncached_layers,
                      values.any_shared ? "read an earlier layer's cache" : "keep no cache here"));
  const std::int64_t share = values.cached.all * unit / question.ranks;
  out.add(memory_cause::kRankShare, share - values.cached.all * unit,
          fmt::format("divided among {} ranks", question.ranks));
  out.add(model.mla ? memory_cause::kLatentReplicated : memory_cause::kReplicated,
          values.cached.rank * unit - share,
          model.mla ? fmt::format("each of {} ranks keeps the whole latent", question.ranks)
                    : fmt::format("a head is kept whole: {} ranks, {} KV heads", question.ranks,
                                  model.num_key_value_heads.value_or(0)));
  out.add(memory_cause::kShape, (totals.parts.values - values.cached.rank) * unit,
          question.shape_reason);
  out.add(memory_cause::kDtype, totals.parts.data_bytes - totals.parts.values * unit,
          fmt::format("{}; the model is in {}", dtypes_text(groups), model_dtype_text(model)));
  out.add(memory_cause::kScales, totals.parts.scale_bytes, question.scales_reason);
  out.add(memory_cause::kIndexer, totals.parts.index_bytes,
          "keys of the sparse attention's indexer");
  out.add(memory_cause::kPadding, totals.parts.padding_bytes, question.padding_reason);
  out.add(memory_cause::kDraft, totals.draft_bytes, "caches of the layers that draft tokens");
}

std::int64_t plain_token_bytes(const config::ModelConfig& model) {
  std::int64_t values = 0;
  for (const config::Layer& layer : model.layers) values += values_of(model, layer, 1).all;
  return values * model_dtype_bytes(model);
}

}  // namespace

std::span<const std::string_view> memory_causes() { return kCauses; }

std::int64_t model_dtype_bytes(const config::ModelConfig& model) {
  return model.dtype.value_or("") == "float32" ? 4 : 2;
}

std::string weights_text(const memory::WeightLedger& ledger, const Memory& memory) {
  return fmt::format("{} parameters, from {}", ledger.parameters, memory.weight_source);
}

std::optional<std::string> weights_over_memory(std::int64_t rank_bytes,
                                               const hardware::Device& device) {
  const std::optional<std::int64_t> usable = device.usable_bytes();
  if (!usable || rank_bytes <= *usable) return std::nullopt;
  return fmt::format("{} of weights a rank, {} of usable memory", format_bytes(rank_bytes),
                     format_bytes(*usable));
}

void add_parts(KvParts& sum, const KvParts& more) {
  sum.values += more.values;
  sum.data_bytes += more.data_bytes;
  sum.scale_bytes += more.scale_bytes;
  sum.index_bytes += more.index_bytes;
  sum.padding_bytes += more.padding_bytes;
}

std::int64_t bytes_of(const KvParts& parts) {
  return parts.data_bytes + parts.scale_bytes + parts.index_bytes + parts.padding_bytes;
}

AccountBuilder::AccountBuilder(std::string figure, std::string plain, std::int64_t plain_bytes)
    : account_{.figure = std::move(figure),
               .plain = std::move(plain),
               .plain_bytes = plain_bytes,
               .rows = {},
               .total_bytes = 0} {}

AccountBuilder& AccountBuilder::add(std::string_view cause, std::int64_t bytes,
                                    std::string reason) {
  if (bytes == 0) return *this;
  const auto known = std::ranges::find(account_.rows, cause, &Row::cause);
  if (known != account_.rows.end()) {
    known->bytes += bytes;
    return *this;
  }
  account_.rows.push_back(
      {.cause = std::string(cause), .bytes = bytes, .reason = std::move(reason)});
  return *this;
}

MemoryAccount AccountBuilder::finish(std::int64_t total_bytes) {
  std::int64_t sum = account_.plain_bytes;
  for (const Row& row : account_.rows) sum += row.bytes;
  add(memory_cause::kNotExplained, total_bytes - sum, "this program does not know why");
  account_.total_bytes = total_bytes;
  return std::move(account_);
}

void account_for_token(const config::ModelConfig& model, const TokenQuestion& question,
                       const std::vector<LayerGroup>& groups, Memory& memory) {
  const std::int64_t plain = plain_token_bytes(model);
  if (!memory.kv_bytes_per_token || plain == 0 || question.ranks < 1) return;
  AccountBuilder account(
      "kv_bytes_per_token",
      fmt::format("keys and values of every attention layer in {}", model_dtype_text(model)),
      plain);
  const auto layers = static_cast<std::int64_t>(model.layers.size());
  append_layer_rows(model, question, groups, sum_up(groups, layers), account);
  for (const Row& row : question.rows) account.add(row.cause, row.bytes, row.reason);
  memory.accounts.push_back(account.finish(*memory.kv_bytes_per_token));
}

void account_for_sequence(std::vector<Row> rows, Memory& memory) {
  if (!memory.kv_bytes_per_token || !memory.sequence_tokens || !memory.kv_bytes_per_sequence) {
    return;
  }
  const auto plain = checked_mul(*memory.kv_bytes_per_token, *memory.sequence_tokens);
  if (!plain) return;
  AccountBuilder account(
      "kv_bytes_per_sequence",
      fmt::format("{} tokens in every layer that has a cache", *memory.sequence_tokens), *plain);
  for (Row& row : rows) account.add(row.cause, row.bytes, std::move(row.reason));
  memory.accounts.push_back(account.finish(*memory.kv_bytes_per_sequence));
}

void account_for_pool(std::optional<std::int64_t> device_bytes, std::vector<Row> rows,
                      Memory& memory) {
  if (!device_bytes || !memory.weight_bytes || !memory.kv_pool_bytes) return;
  if (*memory.weight_bytes > *device_bytes) return;
  AccountBuilder account("kv_pool_bytes",
                         fmt::format("what the weights leave of {}", format_bytes(*device_bytes)),
                         *device_bytes - *memory.weight_bytes);
  for (Row& row : rows) account.add(row.cause, row.bytes, std::move(row.reason));
  memory.accounts.push_back(account.finish(*memory.kv_pool_bytes));
}

void account_for_weights(const config::ModelConfig& model, const memory::WeightLedger& ledger,
                         bool loads_draft, Memory& memory) {
  memory.weight_bytes = ledger.rank_bytes;
  memory.weight_source = ledger.exact ? ledger.source : ledger.source + " (estimate)";
  for (const std::string& reason : ledger.reasons) memory.notes.push_back("weights: " + reason);
  const auto plain = checked_mul(ledger.parameters, model_dtype_bytes(model));
  if (!plain) return;
  std::int64_t draft = 0;
  for (const memory::WeightItem& item : ledger.items) {
    if (loads_draft && item.part == memory::Part::kMtp) draft += item.bytes;
  }
  AccountBuilder account(
      "weight_bytes",
      fmt::format("{} parameters in {}", ledger.parameters, model_dtype_text(model)), *plain);
  account.add(memory_cause::kStoredDtype, ledger.bytes - draft - *plain,
              fmt::format("as stored, from {}", ledger.source));
  account.add(memory_cause::kDraft, draft, "layers that draft tokens are loaded");
  account.add(memory_cause::kRankShare, ledger.rank_bytes - ledger.bytes,
              "of one rank of the largest pipeline stage");
  memory.accounts.push_back(account.finish(ledger.rank_bytes));
}

void resolve_rank_weights(const Request& request, const memory::WeightOptions& options,
                          const WeightRules& rules, Memory& memory, const NoteStep& note) {
  const auto ledger = memory::count_weights(request.model, options);
  if (!ledger) return note(rules.unknown, Severity::kWarn, "", ledger.error().text());
  account_for_weights(request.model, *ledger, options.load_mtp, memory);
  note(rules.counted, Severity::kInfo, format_bytes(ledger->rank_bytes),
       weights_text(*ledger, memory));
  const std::optional<std::string> over = weights_over_memory(ledger->rank_bytes, request.device);
  if (over) note(rules.over_memory, Severity::kError, request.device.id, *over);
}

}  // namespace kernelpath::engines
