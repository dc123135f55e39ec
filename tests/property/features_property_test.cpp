// Properties of the rules over random combinations of arguments.
#include "features/argument_tree.h"
#include "features/candidates.h"
#include "features/suggest.h"
#include "features/validate.h"
#include "json/writer.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace kernelpath::features {
namespace {

const RuleTable& table() { return *find_rule_table("trtllm"); }

// The rules of some version of some engine.
const RuleTable& random_table() {
  std::vector<const RuleTable*> tables = rule_tables("vllm");
  for (const char* engine : {"llamacpp", "deepinfer"}) tables.push_back(find_rule_table(engine));
  tables.push_back(&table());
  return **rc::gen::elementOf(tables);
}

// A combination that the rules have something to say about: the arguments of a few cases together.
json::Value random_arguments(const RuleTable& rules) {
  std::vector<const json::Value*> cases;
  for (const Rule& rule : rules.rules) {
    for (const json::Value& hit : rule.hits) cases.push_back(&hit);
    for (const json::Value& miss : rule.near_misses) cases.push_back(&miss);
  }
  json::Value out = json::Value::object({});
  const int count = *rc::gen::inRange(1, 5);
  for (int i = 0; i < count; ++i) {
    out = merge_arguments(out, **rc::gen::elementOf(cases));
  }
  return out;
}

json::Value shuffled(const json::Value& value) {
  if (!value.is_object()) return value;
  std::vector<json::Member> members;
  for (const json::Member& member : value.members()) {
    members.push_back({.key = member.key, .value = shuffled(member.value)});
  }
  const auto order =
      *rc::gen::container<std::vector<int>>(members.size(), rc::gen::inRange(0, 1000));
  std::vector<std::pair<int, std::size_t>> keyed;
  for (std::size_t i = 0; i < order.size(); ++i) keyed.emplace_back(order[i], i);
  std::sort(keyed.begin(), keyed.end());
  std::vector<json::Member> out;
  for (const auto& [key, index] : keyed) out.push_back(members[index]);
  return json::Value::object(std::move(out));
}

std::string verdict(const RuleTable& rules, const json::Value& arguments) {
  Context context(rules);
  context.state(arguments);
  std::string out;
  for (const Finding& finding : validate(context).findings) {
    out += finding.id + " " + finding.message + "\n";
  }
  return out;
}

const SuggestOptions& options() {
  static const SuggestOptions all{.devices = {{.id = "h200", .sm = 90}, {.id = "b200", .sm = 100}},
                                  .limits = {.max_changes = 3, .max_combinations = 500}};
  return all;
}

RC_GTEST_PROP(Verdict, OrderOfArguments_NeverMatters, ()) {
  const RuleTable& rules = random_table();
  const json::Value arguments = random_arguments(rules);
  RC_ASSERT(verdict(rules, arguments) == verdict(rules, shuffled(arguments)));
}

RC_GTEST_PROP(Suggestions, OfAll_ValidateClean, ()) {
  const RuleTable& rules = random_table();
  Context context(rules);
  context.state(random_arguments(rules));
  const auto result = suggest_all(context, options());
  RC_CLASSIFY(result.changes && !result.changes->empty(), "something to change");
  if (!result.changes) return;
  for (const Change& change : *result.changes) apply(change, context);
  RC_ASSERT(violations(context, {}, Level::kError).empty());
}

RC_GTEST_PROP(Suggestions, OfOneRule_RemoveItAndAddNothing, ()) {
  const RuleTable& rules = random_table();
  Context context(rules);
  context.state(random_arguments(rules));
  const auto before = violations(context, {}, Level::kError);
  if (before.empty()) return;
  const Rule* const target = (*rc::gen::elementOf(before)).rule;
  const auto result = suggest_for(context, *target, options());
  if (!result.changes) return;
  for (const Change& change : *result.changes) apply(change, context);
  for (const Violation& after : violations(context, {}, Level::kError)) {
    RC_ASSERT(after.rule != target);
    RC_ASSERT(std::any_of(before.begin(), before.end(),
                          [&after](const Violation& old) { return old.rule == after.rule; }));
  }
}

// Random expressions, most of them ill-typed: what parses must print and parse to itself.
std::string random_expression(int depth) {
  const auto pick = [](std::vector<std::string> texts) { return *rc::gen::elementOf(texts); };
  if (depth == 0) {
    return pick({"1", "-2", "0.5", "\"fp8\"", "true", "null", "[1, -2]", "[\"a\", null]",
                 "attn_backend", "max_batch_size", "enable_lora", "kv_cache_config.pool_ratio",
                 "device.sm", "load_format"});
  }
  const auto inner = [depth] { return random_expression(*rc::gen::inRange(0, depth)); };
  switch (*rc::gen::inRange(0, 6)) {
    case 0:
      return inner() +
             pick({" or ", " and ", " == ", " != ", " < ", " >= ", " in ", " not in ", " + ", " - ",
                   " * ", " / ", " // ", " % "}) +
             inner();
    case 1:
      return "(" + inner() + ")";
    case 2:
      return pick({"not ", "-"}) + inner();
    case 3:
      return pick({"upper", "len", "sum", "abs", "has", "type_of", "blank"}) + "(" + inner() + ")";
    case 4:
      return pick({"any", "all"}) + "(x : " + inner() + ", x == " + inner() + ")";
    default:
      return "choose(" + inner() + ", " + inner() + ", " + inner() + ")";
  }
}

RC_GTEST_PROP(Expressions, PrintAndParse_IsIdentity, ()) {
  Arena arena;
  const std::string source = random_expression(4);
  const auto parsed = parse_expression(source, table().schema, arena);
  RC_CLASSIFY(parsed.has_value(), "parses");
  if (!parsed) return;
  const std::string printed = print(*parsed, table().schema);
  const auto again = parse_expression(printed, table().schema, arena);
  RC_ASSERT(again.has_value());
  RC_ASSERT(same_expression(*parsed, *again));
  RC_ASSERT(print(*again, table().schema) == printed);
  // Whatever it means, it can be evaluated.
  const Context context(table());
  (void)evaluate(*parsed, context.slots());
}

RC_GTEST_PROP(Expressions, AnyBytes_AreRefusedOrRead, (const std::string& bytes)) {
  Arena arena;
  (void)parse_expression(bytes, table().schema, arena);
  (void)TextTemplate::parse(bytes, table().schema, arena);
}

}  // namespace
}  // namespace kernelpath::features
