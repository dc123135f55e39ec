#include "base/text.h"
#include "base/units.h"
#include "cli/bench_document.h"
#include "report/blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

// text, md and html of llm-bench: one table for each case and set of sizes.

namespace kernelpath::cli {
namespace {

using bench::CaseKind;
using bench::Row;
using bench::Shape;
using report::Block;
using report::Cell;
using report::Tone;

constexpr std::string_view kNothing = "-";

// "2.86 TB/s" from 2.86e12 and "B/s": three digits that count, powers of ten.
std::string scaled(double value, std::string_view unit) {
  constexpr std::array<std::string_view, 6> kPrefixes = {"", "k", "M", "G", "T", "P"};
  std::size_t power = 0;
  while (value >= 999.5 && power + 1 < kPrefixes.size()) {
    value /= 1000;
    ++power;
  }
  const int decimals = value >= 99.95 || power == 0 ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}{}", value, decimals, kPrefixes[power], unit);
}

// What stands above a table; rows with the same one are together.
std::string heading_of(const Row& row) {
  const std::string name(bench::case_info(row.shape.kind).name);
  return row.shape.name.empty() ? name + "  " + bench::describe(row.shape) : name;
}

std::vector<std::string> size_columns(const Shape& shape) {
  if (!shape.name.empty()) return {"shape"};
  switch (shape.kind) {
    case CaseKind::kGqaDecode:
      return {"batch", "context", "queries"};
    case CaseKind::kPrefill:
      return {"batch", "context"};
    case CaseKind::kKvAppend:
      return {"tokens"};
    case CaseKind::kGemv:
    case CaseKind::kMatrixRate:
      return {"rows", "cols", "tokens"};
    case CaseKind::kReadCeiling:
    case CaseKind::kCopy:
      break;
  }
  return {"size"};
}

std::vector<Cell> size_cells(const Shape& shape) {
  const auto cell = [](std::int64_t value) { return Cell{std::to_string(value)}; };
  if (!shape.name.empty()) return {{escape_for_terminal(shape.name)}};
  switch (shape.kind) {
    case CaseKind::kGqaDecode:
      return {cell(shape.batch), cell(shape.contexts.front()), cell(shape.query_tokens)};
    case CaseKind::kPrefill:
      return {cell(shape.batch), cell(shape.contexts.front())};
    case CaseKind::kKvAppend:
      return {cell(shape.batch)};
    case CaseKind::kGemv:
    case CaseKind::kMatrixRate:
      return {cell(shape.rows), cell(shape.cols), cell(shape.batch)};
    case CaseKind::kReadCeiling:
    case CaseKind::kCopy:
      break;
  }
  return {{format_bytes(shape.bytes)}};
}

// Which columns have something to say in a table.
struct Columns {
  bool limit = false;
  bool own_size = false;  // where the limit is the rate of another size
  bool peers = false;
  bool baseline = false;
};

Columns columns_of(const std::vector<const Row*>& rows) {
  Columns out;
  for (const Row* const row : rows) {
    out.limit = out.limit || row->limit_rate > 0;
    out.own_size =
        out.own_size || (row->own_limit_rate > 0 && row->own_limit_rate != row->limit_rate);
    out.peers = out.peers || !row->peers.empty();
    out.baseline = out.baseline || row->baseline.has_value();
  }
  return out;
}

// The cells of a limit; empty where a row has none.
void append_limit_cells(const Row& row, const Columns& columns, std::vector<Cell>& cells) {
  const auto cell = [](bool known, std::string text) {
    return Cell{known ? std::move(text) : std::string(kNothing)};
  };
  const bool limited = row.limit_rate > 0;
  cells.push_back(cell(limited, percent_text(row.of_limit())));
  if (columns.own_size) {
    cells.push_back(cell(row.own_limit_rate > 0, percent_text(row.of_own_size())));
  }
  cells.push_back(cell(limited, time_text(row.t0_s())));
}

void append_result(const Row& row, const Columns& columns, std::vector<Cell>& cells) {
  const bench::Summary& summary = row.measured.summary;
  const Tone tone = row.valid() ? Tone::kPlain : Tone::kWarn;
  cells.push_back({escape_for_terminal(row.kernel)});
  cells.push_back({std::string(bench::cache_state_name(row.cache))});
  cells.push_back({time_text(summary.median) + (row.valid() ? "" : " !"), tone});
  cells.push_back({percent_text(summary.noise), tone});
  cells.push_back({row.computes() ? scaled(row.work.flops, "FLOP") : bytes_text(row.work.bytes)});
  cells.push_back({rate_text(row, row.rate())});
  if (columns.limit) append_limit_cells(row, columns, cells);
  if (columns.peers) {
    const bench::PeerRow* const peer = best_peer(row);
    cells.push_back({peer == nullptr ? std::string(kNothing) : escape_for_terminal(peer->name)});
    cells.push_back({peer == nullptr ? std::string(kNothing) : time_text(*peer->median_s)});
    const bool known = peer != nullptr && summary.median > 0;
    cells.push_back(
        {known ? fmt::format("{:.2f}x", *peer->median_s / summary.median) : std::string(kNothing)});
  }
  if (columns.baseline) {
    const bool known = row.baseline.has_value();
    cells.push_back(
        {known ? fmt::format("{:+.1f} %", 100 * row.baseline->change) : std::string(kNothing),
         known && row.baseline->regressed ? Tone::kBad : Tone::kPlain});
  }
}

Block table_of(const std::vector<const Row*>& rows) {
  const Columns columns = columns_of(rows);
  Block out{.kind = Block::Kind::kTable, .header = size_columns(rows.front()->shape)};
  for (const std::string_view name : {"kernel", "cache", "median", "noise", "work", "rate"}) {
    out.header.emplace_back(name);
  }
  if (columns.limit) {
    out.header.emplace_back("of limit");
    if (columns.own_size) out.header.emplace_back("of own size");
    out.header.emplace_back("t0");
  }
  if (columns.peers) out.header.insert(out.header.end(), {"best peer", "its median", "vs peer"});
  if (columns.baseline) out.header.emplace_back("vs baseline");
  for (const Row* const row : rows) {
    std::vector<Cell> cells = size_cells(row->shape);
    if (row->error) {
      cells.push_back({"not measured", Tone::kWarn});
    } else {
      append_result(*row, columns, cells);
    }
    cells.resize(out.header.size(), {std::string(kNothing)});
    out.rows.push_back(std::move(cells));
  }
  return out;
}

// "limit: gather read 4.60 TB/s", or from the least to the most of them.
void append_limits(const std::vector<const Row*>& rows, std::vector<Block>& blocks) {
  const Row* least = nullptr;
  const Row* most = nullptr;
  for (const Row* const row : rows) {
    if (row->limit_rate <= 0) continue;
    if (least == nullptr || row->limit_rate < least->limit_rate) least = row;
    if (most == nullptr || row->limit_rate > most->limit_rate) most = row;
  }
  if (least == nullptr) return;
  std::string text = fmt::format("limit: {} {}", bench::limit_kind_name(least->limit),
                                 rate_text(*least, least->limit_rate));
  const std::string last = rate_text(*most, most->limit_rate);
  if (!text.ends_with(last)) text += " to " + last;
  blocks.push_back(report::line_block(text, Tone::kDim));
}

// Below a table: what it is measured against, and why rows are marked.
void append_notes(const std::vector<const Row*>& rows, std::vector<Block>& blocks) {
  append_limits(rows, blocks);
  for (const Row* const row : rows) {
    const std::string name = row->shape.name.empty() ? bench::variant(row->shape) : row->shape.name;
    if (row->error) {
      blocks.push_back(
          report::line_block(escape_for_terminal(name) + ": " + row->error->text(), Tone::kWarn));
    }
    if (row->problems.empty()) continue;
    blocks.push_back(report::line_block(
        escape_for_terminal(fmt::format("! {} ({}): {}", name, bench::cache_state_name(row->cache),
                                        join(row->problems, "; "))),
        Tone::kWarn));
  }
}

std::string device_text(const bench::DeviceFacts& device) {
  std::string out = fmt::format("{}  {}", device.id, escape_for_terminal(device.label));
  if (device.threads > 0) {
    out += fmt::format("  {} threads  {}  {} pages", device.threads, device.kernels,
                       device.huge_pages ? "huge" : "4 KiB");
  }
  if (device.sm > 0) {
    out += fmt::format("  sm{}  {} SMs  clocks {}", device.sm, device.num_sms, device.clocks);
  }
  return out;
}

std::vector<Block> blocks_of(const BenchDocument& document) {
  std::vector<Block> blocks = {report::title_block(device_text(document.device))};
  std::vector<std::string> headings;
  for (const Row& row : document.rows) {
    const std::string heading = heading_of(row);
    if (std::ranges::find(headings, heading) == headings.end()) headings.push_back(heading);
  }
  for (const std::string& heading : headings) {
    std::vector<const Row*> rows;
    for (const Row& row : document.rows) {
      if (heading_of(row) == heading) rows.push_back(&row);
    }
    blocks.push_back(report::gap_block());
    blocks.push_back(report::heading_block(escape_for_terminal(heading)));
    blocks.push_back(table_of(rows));
    append_notes(rows, blocks);
  }
  return blocks;
}

}  // namespace

std::string time_text(double seconds) {
  const double magnitude = std::abs(seconds);
  if (magnitude < 0.001) return fmt::format("{:.1f} us", seconds * 1e6);
  if (magnitude < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

std::string bytes_text(double bytes) { return scaled(bytes, "B"); }

std::string rate_text(const Row& row, double rate) {
  return scaled(rate, row.computes() ? "FLOP/s" : "B/s");
}

std::string percent_text(double fraction) { return fmt::format("{:.1f} %", 100 * fraction); }

const bench::PeerRow* best_peer(const Row& row) {
  const bench::PeerRow* out = nullptr;
  for (const bench::PeerRow& peer : row.peers) {
    if (peer.paged && peer.median_s && (out == nullptr || *peer.median_s < *out->median_s))
      out = &peer;
  }
  return out;
}

std::string bench_text(const BenchDocument& document, const report::View& view) {
  return report::render_text(blocks_of(document), view);
}

std::string bench_markdown(const BenchDocument& document) {
  return report::render_markdown(blocks_of(document));
}

std::string bench_html(const BenchDocument& document) {
  return report::render_html("llm-bench", blocks_of(document));
}

}  // namespace kernelpath::cli
