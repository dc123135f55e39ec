#pragma once

#include "engines/engine.h"
#include "json/writer.h"

#include <string>
#include <string_view>
#include <vector>

// The rules of lib/features and of llm-validate itself, for --list rules and --explain.

namespace kernelpath::cli {

struct RuleTableRows {
  std::string engine;  // "trtllm"; "all" for rules that every engine shares
  std::string version;
  std::vector<engines::TableRow> rows;  // level, stage, condition, what happens
};

// Those of the engines named; the shared ones always.
std::vector<RuleTableRows> feature_rule_rows(const std::vector<std::string_view>& engines);

// Every id once, in the order of the tables.
std::vector<std::string> feature_rule_ids();

// Text for a terminal, and an object for each table that has the rule; false if none has.
bool explain_feature_rule(std::string_view id, std::string& text, json::Writer& writer);

}  // namespace kernelpath::cli
