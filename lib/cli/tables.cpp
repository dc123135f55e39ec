#include "base/text.h"
#include "base/units.h"
#include "bench/axes.h"
#include "bench/devices.h"
#include "bench/peers.h"
#include "bench/shape.h"
#include "cli/engine_comparison.h"
#include "cli/information.h"
#include "cli/rule_information.h"
#include "engines/engine.h"
#include "engines/gguf_input.h"
#include "hardware/device.h"
#include "json/writer.h"
#include "report/blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

// --list: the tables of this build and of its engines, as rows of named columns.

namespace kernelpath::cli {
namespace {

using engines::Engine;
using engines::TableRow;

struct EngineRows {
  std::string engine;  // empty for a table of the program itself
  std::string version;
  std::vector<TableRow> rows;
};

constexpr std::array<std::string_view, 7> kOwnKinds = {"kinds", "engines", "devices", "errors",
                                                       "rules", "cases",   "peers"};

std::vector<std::string> all_kinds() {
  std::vector<std::string> out(kOwnKinds.begin(), kOwnKinds.end());
  for (const Engine* engine : engines::all_engines()) {
    for (const std::string& kind : engine->table_kinds()) {
      if (std::find(out.begin(), out.end(), kind) == out.end()) out.push_back(kind);
    }
  }
  return out;
}

std::vector<TableRow> kind_rows() {
  std::vector<TableRow> out;
  for (const std::string& kind : all_kinds()) out.push_back({kind, {}});
  return out;
}

std::vector<TableRow> device_rows() {
  std::vector<TableRow> out;
  for (const hardware::Device& device : hardware::known_devices()) {
    const std::string sm = device.capability ? hardware::capability_text(*device.capability) : "-";
    const std::string memory = device.memory_bytes ? format_bytes(*device.memory_bytes) : "-";
    out.push_back({device.id,
                   {{"platform", std::string(hardware::platform_name(device.platform))},
                    {"capability", sm},
                    {"memory", memory},
                    {"label", device.label}}});
  }
  return out;
}

// What --device of llm-run and llm-bench can name here.
std::vector<TableRow> machine_rows(bool cpu_alone) {
  std::vector<TableRow> out;
  for (const bench::MachineDevice& device : bench::machine_devices()) {
    const bool usable = device.here && (!cpu_alone || device.name == "cpu");
    const std::string why = usable || !device.here ? device.kernels : "llm-run has no CUDA yet";
    out.push_back({device.name,
                   {{"here", usable ? "yes" : "no"},
                    {"kernels", usable ? device.kernels : why},
                    {"memory", device.here ? format_bytes(device.memory_bytes) : "-"},
                    {"label", device.label}}});
  }
  return out;
}

std::vector<TableRow> case_rows() {
  std::vector<TableRow> out;
  for (const bench::CaseInfo& info : bench::case_table()) {
    out.push_back(
        {std::string(info.name),
         {{"measures", std::string(info.does)}, {"varies over", bench::axis_options(info.kind)}}});
  }
  return out;
}

std::vector<TableRow> peer_rows() {
  std::vector<TableRow> out;
  for (const bench::PeerKind& peer : bench::peer_kinds()) {
    out.push_back({peer.name, {{"here", peer.here}, {"what", peer.what}}});
  }
  return out;
}

std::vector<TableRow> error_rows() {
  std::vector<TableRow> out;
  for (const ErrorInfo& info : error_table()) {
    out.push_back({std::string(info.id),
                   {{"exit code", fmt::format("{}", info.exit_code)},
                    {"meaning", std::string(info.sentence)}}});
  }
  return out;
}

std::vector<TableRow> rule_rows(const Engine& engine) {
  std::vector<TableRow> out;
  for (const engines::RuleInfo& rule : engines::listed_rules(engine)) {
    out.push_back({std::string(rule.id),
                   {{"file", std::string(rule.file)}, {"summary", std::string(rule.summary)}}});
  }
  return out;
}

Result<std::vector<const Engine*>> listed_engines(const Settings& settings) {
  std::vector<const Engine*> out;
  for (const std::string& name : settings.list(Option::kEngine)) {
    if (equal_ignoring_case(name, "all")) {
      const auto all = engines::all_engines();
      return std::vector<const Engine*>(all.begin(), all.end());
    }
    KERNELPATH_TRY(engine, engines::find_engine(name));
    out.push_back(engine);
  }
  return out;
}

bool is_kind_of(const Engine& engine, std::string_view kind) {
  const std::vector<std::string> kinds = engine.table_kinds();
  return kind == "rules" || std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

Result<std::vector<EngineRows>> rows_of(const Settings& settings, std::string_view kind) {
  if (kind == "kinds") return std::vector<EngineRows>{{"", "", kind_rows()}};
  if (kind == "engines") return std::vector<EngineRows>{{"", "", engine_rows()}};
  const ProgramKind program = settings.program();
  if (kind == "devices" && computes_here(program)) {
    return std::vector<EngineRows>{{"", "", machine_rows(program == ProgramKind::kRun)}};
  }
  if (kind == "devices") return std::vector<EngineRows>{{"", "", device_rows()}};
  if (kind == "errors") return std::vector<EngineRows>{{"", "", error_rows()}};
  if (kind == "cases") return std::vector<EngineRows>{{"", "", case_rows()}};
  if (kind == "peers") return std::vector<EngineRows>{{"", "", peer_rows()}};
  std::vector<EngineRows> out;
  KERNELPATH_TRY(chosen, listed_engines(settings));
  for (const Engine* engine : chosen) {
    if (!is_kind_of(*engine, kind)) continue;
    out.push_back({std::string(engine->name()), std::string(engine->version()),
                   kind == "rules" ? rule_rows(*engine) : engine->table(kind)});
  }
  if (kind == "rules") {
    std::vector<std::string_view> names;
    names.reserve(chosen.size());
    for (const Engine* engine : chosen) names.push_back(engine->name());
    for (RuleTableRows& table : feature_rule_rows(names)) {
      out.push_back({std::move(table.engine), std::move(table.version), std::move(table.rows)});
    }
  }
  if (!out.empty()) return out;
  const std::vector<std::string> kinds = all_kinds();
  const std::vector<std::string_view> names(kinds.begin(), kinds.end());
  return fail({.code = ErrorCode::kUsageUnknown,
               .message = "no such table; there are " + join_words(kinds),
               .where = "--list",
               .value = shorten(kind, 64),
               .near_matches = near_matches(kind, names)});
}

report::Block text_table(const EngineRows& table, std::string_view kind) {
  report::Block out{.kind = report::Block::Kind::kTable, .header = {std::string(kind)}};
  for (const TableRow& row : table.rows) {
    std::vector<report::Cell> cells = {{escape_for_terminal(row.name)}};
    for (const auto& [column, value] : row.columns) {
      const auto known = std::find(out.header.begin() + 1, out.header.end(), column);
      const auto index = static_cast<std::size_t>(known - out.header.begin());
      if (known == out.header.end()) out.header.push_back(column);
      if (cells.size() <= index) cells.resize(index + 1);
      cells[index] = {escape_for_terminal(value)};
    }
    out.rows.push_back(std::move(cells));
  }
  return out;
}

// A table too wide for a screen stands as one small table a row.
constexpr std::size_t kWidestTable = 8;

bool is_wide(const EngineRows& table) {
  return std::any_of(table.rows.begin(), table.rows.end(),
                     [](const TableRow& row) { return row.columns.size() > kWidestTable; });
}

void append_records(const EngineRows& table, std::vector<report::Block>& blocks) {
  for (const TableRow& row : table.rows) {
    if (!blocks.empty()) blocks.push_back(report::gap_block());
    blocks.push_back(report::subheading_block(escape_for_terminal(row.name)));
    report::Block record{.kind = report::Block::Kind::kTable};
    record.header = {"what", "answer"};
    for (const auto& [column, value] : row.columns) {
      record.rows.push_back({{escape_for_terminal(column)}, {escape_for_terminal(value)}});
    }
    if (!record.rows.empty()) blocks.push_back(std::move(record));
  }
}

std::vector<report::Block> rows_blocks(const std::vector<EngineRows>& tables,
                                       std::string_view kind) {
  if (kind == "engines") return comparison_blocks(tables.front().rows);
  std::vector<report::Block> blocks;
  for (const EngineRows& table : tables) {
    if (!table.engine.empty() && tables.size() > 1) {
      if (!blocks.empty()) blocks.push_back(report::gap_block());
      blocks.push_back(report::heading_block(table.engine + " " + table.version));
    }
    if (is_wide(table)) {
      append_records(table, blocks);
    } else {
      blocks.push_back(text_table(table, kind));
    }
  }
  return blocks;
}

std::string rows_json(const std::vector<EngineRows>& tables, std::string_view kind) {
  json::Writer w;
  w.begin_object();
  w.member("schema", "kernelpath/list").member("schema_version", "1.1.0").member("kind", kind);
  w.key("rows").begin_array();
  for (const EngineRows& table : tables) {
    for (const TableRow& row : table.rows) {
      w.begin_object();
      if (!table.engine.empty()) {
        w.member("engine", table.engine).member("version", table.version);
      }
      w.member("name", row.name).key("columns").begin_object();
      for (const auto& [column, value] : row.columns) w.member(column, value);
      w.end_object().end_object();
    }
  }
  w.end_array().end_object();
  return w.take(2) + "\n";
}

void append_new(std::vector<std::string>& out, std::string word) {
  if (std::find(out.begin(), out.end(), word) == out.end()) out.push_back(std::move(word));
}

// Words of the tables that no engine has a part in; nullopt for the others.
std::optional<std::vector<std::string>> own_words(std::string_view table) {
  std::vector<std::string> out;
  if (table == "kinds") return all_kinds();
  if (table == "devices") {
    for (const hardware::Device& device : hardware::known_devices()) out.push_back(device.id);
    out.emplace_back("auto");
    return out;
  }
  if (table == "cases") {
    for (const bench::CaseInfo& info : bench::case_table()) out.emplace_back(info.name);
    return out;
  }
  if (table == "peers") {
    for (const bench::PeerKind& peer : bench::peer_kinds()) out.push_back(peer.name);
    out.insert(out.end(), {"all", "none"});
    return out;
  }
  return std::nullopt;
}

void append_engine_words(const Engine& engine, std::string_view table,
                         std::vector<std::string>& out) {
  if (table == "engines") {
    append_new(out, std::string(engine.name()));
    append_new(out, fmt::format("{}@{}", engine.name(), engine.version()));
  } else if (table == "codes" || table == "rules") {
    for (const engines::RuleInfo& rule : engines::listed_rules(engine)) {
      append_new(out, std::string(rule.id));
    }
  } else {
    for (const TableRow& row : engine.table(table)) append_new(out, row.name);
  }
}

}  // namespace

Result<std::string> list_text(const Settings& settings, std::string_view kind, bool json) {
  const std::string name = to_lower(kind);
  KERNELPATH_TRY(tables, rows_of(settings, name));
  if (json) return rows_json(tables, name);
  if (settings.text(Option::kFormat) == "md") {
    return report::render_markdown(rows_blocks(tables, name));
  }
  return report::render_text(rows_blocks(tables, name),
                             {.width = settings.integer(Option::kWidth).value_or(0)});
}

std::vector<std::string> table_words(std::string_view table) {
  if (std::optional<std::vector<std::string>> own = own_words(table)) return *std::move(own);
  std::vector<std::string> out;
  if (table == "engines") out.emplace_back("all");
  if (table == "codes") {
    for (const ErrorInfo& info : error_table()) out.emplace_back(info.id);
  }
  if (table == "codes" || table == "rules") {
    for (std::string& id : feature_rule_ids()) append_new(out, std::move(id));
  }
  for (const Engine* engine : engines::all_engines()) append_engine_words(*engine, table, out);
  return out;
}

}  // namespace kernelpath::cli
