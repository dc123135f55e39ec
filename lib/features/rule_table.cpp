#include "features/rule_table.h"

#include "base/assert.h"
#include "base/text.h"

#include <algorithm>
#include <array>

namespace kernelpath::features {
namespace {

using Tables = std::vector<std::unique_ptr<const RuleTable>>;

// One table for each version that the file speaks of.
Tables load_embedded(std::string_view engine) {
  const json::Document facts = embedded_rule_document("facts.json");
  const json::Document rules = embedded_rule_document(std::string(engine) + ".json");
  Tables out;
  const auto add = [&](std::string_view version) {
    auto table = read_rule_table(facts, rules, version);
    KERNELPATH_ASSERT(table.has_value());
    out.push_back(std::move(*table));
  };
  const auto versions = rules.root.find("versions")->items();
  if (versions.empty()) add({});
  for (const json::Value& version : versions) add(version.as_string());
  return out;
}

// Each engine's tables are read when they are first asked for.
template <int Engine>
const Tables& tables_of(std::string_view engine) {
  static const Tables tables = load_embedded(engine);
  return tables;
}

constexpr std::array<std::string_view, 7> kEngines = {
    "trtllm", "vllm", "sglang", "llamacpp", "deepinfer", "kernelpath", "all"};
constexpr std::array kTables = {tables_of<0>, tables_of<1>, tables_of<2>, tables_of<3>,
                                tables_of<4>, tables_of<5>, tables_of<6>};
static_assert(kTables.size() == kEngines.size());

const Tables* embedded_tables(std::string_view engine) {
  for (std::size_t i = 0; i < kEngines.size(); ++i) {
    if (kEngines.at(i) == engine) return &kTables.at(i)(engine);
  }
  return nullptr;
}

}  // namespace

json::Document embedded_rule_document(std::string_view path) {
  std::string_view content;
  for (const auto files : {embedded_rules(), embedded_argument_files()}) {
    for (const EmbeddedFile& file : files) {
      if (file.path == path) content = file.content;
    }
  }
  KERNELPATH_ASSERT(!content.empty());
  auto document = json::parse_object(std::string(content), std::string(path));
  KERNELPATH_ASSERT(document.has_value());
  return std::move(*document);
}

const Rule* RuleTable::find(std::string_view id) const {
  const auto found = std::find_if(rules.begin(), rules.end(), [id](const Rule& rule) {
    return rule.level != Level::kDerive && equal_ignoring_case(rule.id, id);
  });
  return found == rules.end() ? nullptr : &*found;
}

std::span<const std::string_view> engines_with_rules() { return kEngines; }

const RuleTable* find_rule_table(std::string_view engine, std::string_view version) {
  const Tables* const tables = embedded_tables(engine);
  if (tables == nullptr) return nullptr;
  if (version.empty()) return tables->back().get();
  for (const auto& table : *tables) {
    if (table->version == version) return table.get();
  }
  return nullptr;
}

std::vector<const RuleTable*> rule_tables(std::string_view engine) {
  std::vector<const RuleTable*> out;
  const Tables* const tables = embedded_tables(engine);
  if (tables == nullptr) return out;
  for (const auto& table : *tables) out.push_back(table.get());
  return out;
}

}  // namespace kernelpath::features
