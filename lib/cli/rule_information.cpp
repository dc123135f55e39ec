#include "cli/rule_information.h"

#include "base/text.h"
#include "cli/own_findings.h"
#include "features/expression.h"
#include "features/rule_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace kernelpath::cli {
namespace {

using features::Rule;
using features::RuleTable;

// A rule with the table that it stands in; null for those of the command-line reader.
struct Listed {
  const Rule* rule;
  const RuleTable* table;
};

std::string condition_of(const Listed& listed) {
  if (listed.table == nullptr) return "a word of --command is not read as an argument";
  return features::print(listed.rule->when, listed.table->schema);
}

std::string message_of(const Listed& listed) {
  if (listed.table == nullptr) return listed.rule->why;
  // {item} alone says nothing to somebody who reads a table.
  const std::string& message = listed.rule->message.source();
  return message == "{item}" ? listed.rule->why : message;
}

std::string version_of(const RuleTable* table) {
  return table == nullptr ? std::string() : table->version;
}

std::vector<Listed> rules_of(const RuleTable& table) {
  std::vector<Listed> out;
  for (const Rule& rule : table.rules) {
    if (rule.level != features::Level::kDerive) out.push_back({&rule, &table});
  }
  if (table.engine != "all") return out;
  for (const Rule* rule : command_rules()) out.push_back({rule, nullptr});
  return out;
}

// The rules of all versions of an engine, the newest version first.
std::vector<Listed> rules_of_engine(std::string_view engine) {
  std::vector<Listed> out;
  const auto tables = features::rule_tables(engine);
  for (auto table = tables.rbegin(); table != tables.rend(); ++table) {
    const std::vector<Listed> rules = rules_of(**table);
    out.insert(out.end(), rules.begin(), rules.end());
  }
  return out;
}

// What is said of a rule does not change between versions that have it alike.
bool says_the_same(const Listed& a, const Listed& b) {
  return a.rule->id == b.rule->id && a.rule->level == b.rule->level &&
         condition_of(a) == condition_of(b) && message_of(a) == message_of(b);
}

// The versions that an explanation speaks of: "0.25.1, 0.33.0".
std::string versions_of(std::string_view engine, const Listed& listed) {
  std::vector<std::string> out;
  if (listed.table == nullptr) return {};
  for (const RuleTable* table : features::rule_tables(engine)) {
    const Rule* const rule = table->find(listed.rule->id);
    const bool same = rule != nullptr && says_the_same(listed, {rule, table});
    if (same && !table->version.empty()) out.push_back(table->version);
  }
  return join(out, ", ");
}

engines::TableRow row_of(const Listed& listed) {
  return {listed.rule->id,
          {{"level", std::string(features::level_name(listed.rule->level))},
           {"stage", std::string(features::stage_name(listed.rule->stage))},
           {"file", listed.rule->source.file},
           {"summary", message_of(listed)},
           {"when", condition_of(listed)}}};
}

std::string explain_text(std::string_view engine, const Listed& listed) {
  const Rule& rule = *listed.rule;
  const std::string version = versions_of(engine, listed);
  std::string out = fmt::format(
      "{}  (rule of {}{}: {}, {})\n  {}\n", rule.id, engine, version.empty() ? "" : " " + version,
      features::level_name(rule.level), features::stage_name(rule.stage), message_of(listed));
  out += fmt::format("  when: {}\n", condition_of(listed));
  if (!rule.why.empty()) out += fmt::format("  why: {}\n", rule.why);
  if (!rule.fix.empty()) out += fmt::format("  do: {}\n", rule.fix.source());
  if (!rule.allowed.empty()) out += fmt::format("  allowed: {}\n", join(rule.allowed, ", "));
  if (!rule.issue.empty()) out += fmt::format("  issue: {}\n", rule.issue);
  if (!rule.source.file.empty()) {
    out += fmt::format("  source: {} {} @ {}\n", rule.source.project, rule.source.file,
                       rule.source.version);
  }
  return out;
}

void explain_json(json::Writer& w, std::string_view engine, const Listed& listed) {
  const Rule& rule = *listed.rule;
  const auto member_if = [&w](std::string_view name, const std::string& value) {
    if (!value.empty()) w.member(name, value);
  };
  w.begin_object();
  w.member("id", rule.id).member("kind", "rule").member("engine", engine);
  member_if("version", versions_of(engine, listed));
  w.member("level", features::level_name(rule.level));
  w.member("stage", features::stage_name(rule.stage));
  w.member("summary", message_of(listed)).member("when", condition_of(listed));
  member_if("why", rule.why);
  member_if("remedy", rule.fix.source());
  member_if("issue", rule.issue);
  w.key("source").begin_object();
  member_if("project", rule.source.project);
  member_if("file", rule.source.file);
  member_if("version", rule.source.version);
  w.end_object().end_object();
}

}  // namespace

std::vector<RuleTableRows> feature_rule_rows(const std::vector<std::string_view>& engines) {
  std::vector<RuleTableRows> out;
  for (const std::string_view engine : features::engines_with_rules()) {
    const bool asked =
        engine == "all" || std::find(engines.begin(), engines.end(), engine) != engines.end();
    if (!asked) continue;
    for (const RuleTable* rules : features::rule_tables(engine)) {
      RuleTableRows table{.engine = std::string(engine), .version = version_of(rules), .rows = {}};
      for (const Listed& listed : rules_of(*rules)) table.rows.push_back(row_of(listed));
      out.push_back(std::move(table));
    }
  }
  return out;
}

std::vector<std::string> feature_rule_ids() {
  std::vector<std::string> out;
  for (const std::string_view engine : features::engines_with_rules()) {
    for (const Listed& listed : rules_of_engine(engine)) {
      if (std::find(out.begin(), out.end(), listed.rule->id) == out.end()) {
        out.push_back(listed.rule->id);
      }
    }
  }
  return out;
}

bool explain_feature_rule(std::string_view id, std::string& text, json::Writer& writer) {
  bool found = false;
  for (const std::string_view engine : features::engines_with_rules()) {
    std::vector<Listed> said;
    for (const Listed& listed : rules_of_engine(engine)) {
      if (!equal_ignoring_case(listed.rule->id, id)) continue;
      if (std::any_of(said.begin(), said.end(),
                      [&](const Listed& other) { return says_the_same(other, listed); })) {
        continue;
      }
      said.push_back(listed);
      text += explain_text(engine, listed);
      explain_json(writer, engine, listed);
      found = true;
    }
  }
  return found;
}

}  // namespace kernelpath::cli
