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

// A fact that the engine's resolution settles, and the arguments that it depends on.
struct ResolvedFact {
  std::string name = {};                    // "memory.weight_bytes"
  std::vector<std::string> arguments = {};  // fields of the table
};

// The rules of one version of an engine in the order of its checks, and the fields they read.
// Immutable; values in it live as long as the table.
struct RuleTable {
  std::string engine;                 // "trtllm"; "all" for rules that every engine shares
  std::string project;                // "TensorRT-LLM"
  std::string version;                // whose rules these are; empty where no version matters
  std::vector<std::string> versions;  // that the file speaks of, oldest first
  Schema schema;
  std::vector<Rule> rules;
  std::vector<ResolvedFact> resolution;
  Arena arena;

  // By id, any case; null pointer if there is none.
  [[nodiscard]] const Rule* find(std::string_view id) const;
};

// Reads the rules of one version from a rule file; of the newest if `version` is empty. `facts`
// holds the fields that every table shares (data/rules/facts.json). Error kInputSchema, naming the
// rule and the part of it: an unknown key, an expression that does not parse, an id that stands
// twice in one version, a version that the file does not speak of.
Result<std::unique_ptr<const RuleTable>> read_rule_table(const json::Document& facts,
                                                         const json::Document& rules,
                                                         std::string_view version = {});

// The rule files of data/rules/ as the build embedded them.
std::span<const EmbeddedFile> embedded_rules();

// Tables of arguments and options that extraction writes into data/engines/.
std::span<const EmbeddedFile> embedded_argument_files();

// One of these files, parsed; it must exist and be well-formed.
json::Document embedded_rule_document(std::string_view path);

// Engines that have rules, in the order of reports, "all" last.
std::span<const std::string_view> engines_with_rules();

// The embedded table of an engine's version, of its newest if `version` is empty; null pointer if
// there is none. Read once, on first use.
const RuleTable* find_rule_table(std::string_view engine, std::string_view version = {});

// The tables of all versions of an engine, oldest first; empty if it has none.
std::vector<const RuleTable*> rule_tables(std::string_view engine);

}  // namespace kernelpath::features
