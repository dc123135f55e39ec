#include "report/memory.h"

#include "base/text.h"
#include "base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

namespace kernelpath::report {
namespace {

using engines::Memory;
using engines::MemoryAccount;
using engines::Resolution;

std::string safe(std::string_view text) { return escape_for_terminal(text); }

constexpr auto kFigures = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"weight_bytes", "weights"},
    {"kv_bytes_per_token", "KV per token"},
    {"kv_bytes_per_sequence", "KV a sequence"},
    {"kv_pool_bytes", "KV pool"},
});

// "128 KiB of KV per token; 131072 tokens = 16.0 GiB a sequence, 64.0 GiB of 4 sequences".
std::string kv_sentence(const Memory& memory) {
  if (!memory.kv_bytes_per_token) return "";
  std::string text = fmt::format("{} of KV per token", format_bytes(*memory.kv_bytes_per_token));
  const std::optional<std::int64_t>& estimate = memory.kv_bytes_per_token_estimate;
  if (estimate && *estimate != *memory.kv_bytes_per_token) {
    text += fmt::format(" (the engine budgets with {})", format_bytes(*estimate));
  }
  if (memory.kv_bytes_per_sequence && memory.sequence_tokens) {
    text += fmt::format("; {} tokens = {} a sequence", *memory.sequence_tokens,
                        format_bytes(*memory.kv_bytes_per_sequence));
  }
  if (memory.batch_sequences && memory.kv_bytes_per_batch) {
    text += fmt::format(", {} of {} sequences", format_bytes(*memory.kv_bytes_per_batch),
                        *memory.batch_sequences);
  }
  return text;
}

std::string weight_sentence(const Memory& memory) {
  std::string text;
  if (memory.weight_bytes) {
    text = fmt::format("weights {} ({})", format_bytes(*memory.weight_bytes),
                       safe(memory.weight_source));
  }
  if (memory.kv_pool_bytes && memory.kv_pool_tokens) {
    text += fmt::format("{}KV pool {} = {} tokens", text.empty() ? "" : "; ",
                        format_bytes(*memory.kv_pool_bytes), *memory.kv_pool_tokens);
  }
  return text;
}

// "vllm", or "vllm@0.25.1" where another version of it stands beside.
std::string engine_label(const std::vector<EngineAnswer>& engines, const Resolution& resolution) {
  const auto versions = std::ranges::count_if(engines, [&](const EngineAnswer& other) {
    return other.resolution.engine == resolution.engine;
  });
  const std::string name = safe(resolution.engine);
  return versions > 1 ? name + "@" + safe(resolution.version) : name;
}

std::string bytes_or_dash(const std::optional<std::int64_t>& bytes) {
  return bytes ? format_bytes(*bytes) : "-";
}

std::string per_token_text(const Memory& memory) {
  std::string text = bytes_or_dash(memory.kv_bytes_per_token);
  const std::optional<std::int64_t>& estimate = memory.kv_bytes_per_token_estimate;
  if (estimate && estimate != memory.kv_bytes_per_token) {
    text += fmt::format(" (budget {})", format_bytes(*estimate));
  }
  return text;
}

std::string sequence_text(const Memory& memory) {
  if (!memory.kv_bytes_per_sequence || !memory.sequence_tokens) return "-";
  return fmt::format("{} of {} tokens", format_bytes(*memory.kv_bytes_per_sequence),
                     *memory.sequence_tokens);
}

bool has_sizes(const Memory& memory) { return memory.weight_bytes || memory.kv_bytes_per_token; }

// Columns that only some deployments and models have.
struct ExtraColumns {
  bool batch = false;
  bool state = false;
};

std::vector<Cell> memory_row(const std::string& label, const Memory& memory,
                             const ExtraColumns& extra) {
  std::vector<Cell> row = {{label},
                           {bytes_or_dash(memory.weight_bytes)},
                           {per_token_text(memory)},
                           {sequence_text(memory)}};
  if (extra.batch) row.push_back({bytes_or_dash(memory.kv_bytes_per_batch)});
  if (extra.state) row.push_back({bytes_or_dash(memory.state_bytes_per_sequence)});
  row.push_back({bytes_or_dash(memory.kv_pool_bytes)});
  row.push_back({memory.kv_pool_tokens ? fmt::to_string(*memory.kv_pool_tokens) : "-"});
  return row;
}

void append_memory_table(std::vector<Block>& out, const std::vector<EngineAnswer>& engines) {
  ExtraColumns extra;
  bool any = false;
  for (const EngineAnswer& engine : engines) {
    const Memory& memory = engine.resolution.memory;
    any = any || has_sizes(memory);
    extra.batch = extra.batch || memory.kv_bytes_per_batch;
    extra.state = extra.state || memory.state_bytes_per_sequence;
  }
  if (!any) return;
  Block table{.kind = Block::Kind::kTable};
  table.header = {"one rank", "weights", "KV per token", "KV a sequence"};
  if (extra.batch) table.header.emplace_back("KV of the batch");
  if (extra.state) table.header.emplace_back("state a sequence");
  table.header.insert(table.header.end(), {"KV pool", "tokens of the pool"});
  for (const EngineAnswer& engine : engines) {
    const Memory& memory = engine.resolution.memory;
    if (!has_sizes(memory)) continue;
    table.rows.push_back(memory_row(engine_label(engines, engine.resolution), memory, extra));
  }
  out.push_back(std::move(table));
}

void append_account_rows(const std::string& label, const MemoryAccount& account, Block& table) {
  for (const MemoryAccount::Row& row : account.rows) {
    table.rows.push_back({{std::string(figure_name(account.figure))},
                          {label},
                          {signed_bytes(row.bytes)},
                          {safe(row.cause)},
                          {safe(row.reason)}});
  }
}

std::vector<std::pair<std::string, std::int64_t>> terms_of(const Memory& memory,
                                                           std::string_view figure) {
  std::vector<std::pair<std::string, std::int64_t>> out;
  for (const MemoryAccount& account : memory.accounts) {
    if (account.figure != figure) continue;
    out.emplace_back("plain", account.plain_bytes);
    for (const MemoryAccount::Row& row : account.rows) out.emplace_back(row.cause, row.bytes);
  }
  return out;
}

}  // namespace

std::string_view figure_name(std::string_view figure) {
  const auto* const found =
      std::ranges::find(kFigures, figure, &std::pair<std::string_view, std::string_view>::first);
  return found == kFigures.end() ? figure : found->second;
}

std::string signed_bytes(std::int64_t bytes) {
  // The smallest number has no positive counterpart.
  const std::int64_t size =
      bytes < 0 ? -std::max(bytes, -std::numeric_limits<std::int64_t>::max()) : bytes;
  return (bytes < 0 ? "-" : "+") + format_bytes(size);
}

void append_memory(std::vector<Block>& out, const InputAnswer& answer) {
  const bool several = answer.engines.size() > 1;
  if (several) append_memory_table(out, answer.engines);
  for (const EngineAnswer& engine : answer.engines) {
    const Memory& memory = engine.resolution.memory;
    if (!several) {
      for (const std::string& text : {kv_sentence(memory), weight_sentence(memory)}) {
        if (!text.empty()) out.push_back(line_block(text));
      }
    }
    const std::string prefix =
        several ? engine_label(answer.engines, engine.resolution) + ": " : "";
    for (const std::string& note : memory.notes) out.push_back(line_block(prefix + safe(note)));
  }
}

void append_memory_differences(std::vector<Block>& out, const std::vector<EngineAnswer>& engines) {
  Block table{.kind = Block::Kind::kTable};
  table.header = {"size", "engine", "adds", "memory difference", "why"};
  for (const auto& [figure, name] : kFigures) {
    for (const EngineAnswer& engine : engines) {
      for (const MemoryAccount& account : engine.resolution.memory.accounts) {
        if (account.figure != figure) continue;
        append_account_rows(engine_label(engines, engine.resolution), account, table);
      }
    }
  }
  if (table.rows.empty()) return;
  out.push_back(gap_block());
  out.push_back(std::move(table));
}

void write_accounts(json::Writer& w, const Memory& memory) {
  w.key("accounts").begin_array();
  for (const MemoryAccount& account : memory.accounts) {
    w.begin_object();
    w.member("figure", account.figure);
    w.member("plain", account.plain).member("plain_bytes", account.plain_bytes);
    w.key("differences").begin_array();
    for (const MemoryAccount::Row& row : account.rows) {
      w.begin_object();
      w.member("cause", row.cause).member("bytes", row.bytes).member("reason", row.reason);
      w.end_object();
    }
    w.end_array();
    w.member("total_bytes", account.total_bytes);
    w.end_object();
  }
  w.end_array();
}

std::vector<AccountDifference> account_differences(const Memory& from, const Memory& to) {
  std::vector<AccountDifference> out;
  for (const auto& [figure, name] : kFigures) {
    std::vector<AccountDifference> rows;
    const auto row_of = [&rows, key = figure](const std::string& cause) -> AccountDifference& {
      const auto known = std::ranges::find(rows, cause, &AccountDifference::cause);
      if (known != rows.end()) return *known;
      return rows.emplace_back(AccountDifference{.figure = std::string(key), .cause = cause});
    };
    for (const auto& [cause, bytes] : terms_of(from, figure)) row_of(cause).from_bytes = bytes;
    for (const auto& [cause, bytes] : terms_of(to, figure)) row_of(cause).to_bytes = bytes;
    std::erase_if(rows, [](const auto& row) { return row.from_bytes == row.to_bytes; });
    out.insert(out.end(), rows.begin(), rows.end());
  }
  return out;
}

}  // namespace kernelpath::report
