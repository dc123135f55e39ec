#include "features/rule_table.h"

#include "base/assert.h"
#include "base/text.h"

#include <algorithm>
#include <array>

namespace kernelpath::features {
namespace {

constexpr std::array<std::string_view, 2> kEngines = {"trtllm", "all"};

std::unique_ptr<const RuleTable> load_embedded(std::string_view path) {
  auto table = read_rule_table(embedded_rule_document("facts.json"), embedded_rule_document(path));
  KERNELPATH_ASSERT(table.has_value());
  return std::move(*table);
}

}  // namespace

json::Document embedded_rule_document(std::string_view path) {
  const auto files = embedded_rules();
  const auto found = std::find_if(files.begin(), files.end(),
                                  [path](const EmbeddedFile& file) { return file.path == path; });
  KERNELPATH_ASSERT(found != files.end());
  auto document = json::parse_object(std::string(found->content), std::string(path));
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

const RuleTable* find_rule_table(std::string_view engine) {
  if (engine == "trtllm") {
    static const std::unique_ptr<const RuleTable> table = load_embedded("trtllm.json");
    return table.get();
  }
  if (engine == "all") {
    static const std::unique_ptr<const RuleTable> table = load_embedded("all.json");
    return table.get();
  }
  return nullptr;
}

}  // namespace kernelpath::features
