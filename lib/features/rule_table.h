#pragma once

#include "base/embedded.h"
#include "base/result.h"
#include "features/rule.h"
#include "features/schema.h"
#include "json/document.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::features {

// The rules of one engine in the order of its checks, and the fields they read. Immutable; values
// in it live as long as the table.
struct RuleTable {
  std::string engine;                 // "trtllm"; "all" for rules that every engine shares
  std::string project;                // "TensorRT-LLM"
  std::vector<std::string> versions;  // engine versions that it speaks of, oldest first
  Schema schema;
  std::vector<Rule> rules;
  Arena arena;

  // By id, any case; null pointer if there is none.
  [[nodiscard]] const Rule* find(std::string_view id) const;
};

// Reads a rule file. `facts` holds the fields that every table shares (data/rules/facts.json).
// Error kInputSchema, naming the rule and the part of it: an unknown key, an expression that does
// not parse, an id that stands twice.
Result<std::unique_ptr<const RuleTable>> read_rule_table(const json::Document& facts,
                                                         const json::Document& rules);

// The rule files of data/rules/ as the build embedded them.
std::span<const EmbeddedFile> embedded_rules();

// One of them, parsed; it must exist and be well-formed.
json::Document embedded_rule_document(std::string_view path);

// Engines that have rules, in the order of reports, "all" last.
std::span<const std::string_view> engines_with_rules();

// The embedded table of an engine; null pointer if it has none. Read once, on first use.
const RuleTable* find_rule_table(std::string_view engine);

}  // namespace kernelpath::features
