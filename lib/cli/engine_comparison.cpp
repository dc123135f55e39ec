#include "cli/engine_comparison.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace kernelpath::cli {
namespace {

using engines::Engine;
using engines::TableRow;

struct CountedTable {
  std::string_view column;
  std::string_view kind;  // of the engine's table
};
constexpr auto kCounted = std::to_array<CountedTable>(
    {{"models", "architectures"}, {"backends", "backends"}, {"arguments", "settings"}});

constexpr std::string_view kVersion = "version";
constexpr std::string_view kVersions = "versions";
constexpr std::string_view kRules = "rules";

bool is_phrase(std::string_view column) {
  return std::ranges::any_of(engines::kDescriptorAspects,
                             [&](const auto& aspect) { return aspect.name == column; });
}

std::size_t versions_of(std::string_view name) {
  return static_cast<std::size_t>(std::ranges::count_if(
      engines::all_engines(), [&](const Engine* engine) { return engine->name() == name; }));
}

TableRow row_of(const Engine& engine) {
  TableRow out{std::string(engine.name()),
               {{std::string(kVersion), std::string(engine.version())},
                {std::string(kVersions), fmt::to_string(versions_of(engine.name()))}}};
  for (const CountedTable& counted : kCounted) {
    out.columns.emplace_back(counted.column, fmt::to_string(engine.table(counted.kind).size()));
  }
  out.columns.emplace_back(kRules, fmt::to_string(engine.rules().size()));
  for (const engines::DescriptorAspect& aspect : engines::kDescriptorAspects) {
    out.columns.emplace_back(aspect.name, engine.descriptor().*aspect.phrase);
  }
  return out;
}

std::string value_of(const TableRow& row, std::string_view column) {
  const auto found =
      std::ranges::find_if(row.columns, [&](const auto& pair) { return pair.first == column; });
  return found == row.columns.end() ? std::string() : found->second;
}

report::Block counts_table(const std::vector<TableRow>& rows) {
  report::Block out{.kind = report::Block::Kind::kTable, .header = {"engine"}};
  for (const auto& [column, value] : rows.front().columns) {
    if (!is_phrase(column)) out.header.push_back(column);
  }
  for (const TableRow& row : rows) {
    std::vector<report::Cell> cells = {{escape_for_terminal(row.name)}};
    for (const auto& [column, value] : row.columns) {
      if (!is_phrase(column)) cells.push_back({escape_for_terminal(value)});
    }
    out.rows.push_back(std::move(cells));
  }
  return out;
}

report::Block aspect_table(const std::vector<TableRow>& rows, std::string_view aspect) {
  report::Block out{.kind = report::Block::Kind::kTable, .header = {"engine", "answer"}};
  const TableRow* before = nullptr;
  for (const TableRow& row : rows) {
    const std::string phrase = value_of(row, aspect);
    const bool said =
        before != nullptr && before->name == row.name && value_of(*before, aspect) == phrase;
    before = &row;
    if (!said) out.rows.push_back({{escape_for_terminal(row.name)}, {escape_for_terminal(phrase)}});
  }
  return out;
}

}  // namespace

std::vector<TableRow> engine_rows() {
  std::vector<TableRow> out;
  for (const Engine* engine : engines::all_engines()) out.push_back(row_of(*engine));
  return out;
}

std::vector<report::Block> comparison_blocks(const std::vector<TableRow>& rows) {
  if (rows.empty()) return {};
  std::vector<report::Block> out = {counts_table(rows)};
  for (const engines::DescriptorAspect& aspect : engines::kDescriptorAspects) {
    out.push_back(report::gap_block());
    out.push_back(report::subheading_block(std::string(aspect.name)));
    out.push_back(aspect_table(rows, aspect.name));
  }
  return out;
}

}  // namespace kernelpath::cli
