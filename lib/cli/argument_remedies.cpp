#include "cli/argument_remedies.h"

#include "features/argument_table.h"
#include "features/argument_tree.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

namespace kernelpath::cli {
namespace {

using features::ArgumentInfo;
using features::Changes;

// What the user calls the argument.
std::string shown_name(const features::CombinationQuestion& combination, const std::string& name) {
  const std::map<std::string, std::string> names = features::names_of(combination);
  const auto found = names.find(name);
  return found == names.end() ? name : found->second;
}

std::string with_value(const std::string& name, const json::Value& value) {
  const std::string text = value.is_string() ? value.as_string() : value.brief();
  return fmt::format("{}{}{}", name, name.starts_with("--") ? " " : ": ", text);
}

json::Value bound(const ArgumentInfo& info, double value) {
  const bool whole = info.type == features::FieldType::kInteger;
  return whole ? json::Value::integer(std::llround(value)) : json::Value::number(value);
}

// The choices, and the bounds; a bound that does not belong to the range is met one step inside.
std::vector<json::Value> allowed_values(const ArgumentInfo& info) {
  std::vector<json::Value> out = info.choices;
  const bool whole = info.type == features::FieldType::kInteger;
  if (info.min) out.push_back(bound(info, *info.min));
  if (info.max) out.push_back(bound(info, *info.max));
  if (info.above && whole) out.push_back(bound(info, std::floor(*info.above) + 1));
  if (info.below && whole) out.push_back(bound(info, std::ceil(*info.below) - 1));
  return out;
}

void collect_leaves(const json::Value& value, const std::string& path,
                    std::vector<std::string>& out) {
  if (!value.is_object() || value.members().empty()) {
    if (!path.empty()) out.push_back(path);
    return;
  }
  for (const json::Member& member : value.members()) {
    collect_leaves(member.value, path.empty() ? member.key : path + "." + member.key, out);
  }
}

}  // namespace

bool is_about_an_argument(const features::RuleTable& table, const features::Rule& rule) {
  return rule.each && table.schema.field(*rule.each).name.starts_with("arguments.");
}

Changes argument_remedies(const features::CombinationQuestion& combination,
                          const features::Finding& finding) {
  const std::string& name = finding.field;
  const json::Value& stated = combination.arguments.tree();
  if (features::find_argument_value(stated, name) == nullptr) return {};
  Changes out;
  const features::ArgumentTable* const table =
      features::find_argument_table(combination.table->engine, combination.table->version);
  const ArgumentInfo* const info = table != nullptr ? table->find(name) : nullptr;
  const bool unknown = combination.table->schema.field(*finding.rule->each).name ==
                       std::string_view("arguments.unknown");
  for (const std::string& near :
       unknown&& table != nullptr ? table->near(name) : std::vector<std::string>()) {
    if (features::find_argument_value(stated, near) != nullptr) continue;
    out.push_back(
        {.name = name, .renamed = near, .text = fmt::format("{} instead of {}", near, name)});
  }
  for (const json::Value& value :
       !unknown && info != nullptr ? allowed_values(*info) : std::vector<json::Value>()) {
    out.push_back(
        {.name = name, .value = value, .text = with_value(shown_name(combination, name), value)});
  }
  out.push_back({.name = name, .text = "leave out " + shown_name(combination, name)});
  return out;
}

Changes leave_out_each(const features::CombinationQuestion& combination) {
  std::vector<std::string> names;
  collect_leaves(combination.arguments.tree(), "", names);
  Changes out;
  for (const std::string& name : names) {
    out.push_back({.name = name, .text = "leave out " + shown_name(combination, name)});
  }
  return out;
}

}  // namespace kernelpath::cli
