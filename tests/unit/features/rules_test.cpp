#include "features/rule_table.h"
#include "features/validate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace kernelpath::features {
namespace {

// Everything that a rule could need, so that rules about absent arguments count too.
const Scope kEverything{.all_arguments_known = true};

bool fires(const RuleTable& table, const std::string& id, const json::Value& arguments) {
  Context context(table);
  context.state(arguments);
  const auto found = violations(context, kEverything, Level::kNote);
  return std::any_of(found.begin(), found.end(),
                     [&id](const Violation& violation) { return violation.rule->id == id; });
}

class EveryTable : public testing::TestWithParam<std::string_view> {
 protected:
  const RuleTable& table() const { return *find_rule_table(GetParam()); }
};

TEST_P(EveryTable, EachRule_HasAHitAndANearMiss) {
  for (const Rule& rule : table().rules) {
    if (rule.level == Level::kDerive) continue;
    EXPECT_FALSE(rule.hits.empty()) << rule.id;
    EXPECT_FALSE(rule.near_misses.empty()) << rule.id;
    EXPECT_FALSE(rule.why.empty()) << rule.id;
    EXPECT_FALSE(rule.fix.empty()) << rule.id;
    EXPECT_FALSE(rule.source.file.empty()) << rule.id;
  }
}

TEST_P(EveryTable, Cases_HitAndMissAsTheySay) {
  for (const Rule& rule : table().rules) {
    for (const json::Value& hit : rule.hits) {
      EXPECT_TRUE(fires(table(), rule.id, hit)) << rule.id << " " << hit.brief(300);
    }
    for (const json::Value& miss : rule.near_misses) {
      EXPECT_FALSE(fires(table(), rule.id, miss)) << rule.id << " " << miss.brief(300);
    }
  }
}

TEST_P(EveryTable, Conditions_PrintAndParseToTheSame) {
  Arena arena;
  for (const Rule& rule : table().rules) {
    const std::string text = print(rule.when, table().schema);
    const auto again = parse_condition(text, table().schema, arena);
    ASSERT_TRUE(again.has_value()) << rule.id << ": " << text;
    EXPECT_TRUE(same_expression(rule.when, *again)) << text;
    EXPECT_EQ(print(*again, table().schema), text);
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, EveryTable, testing::ValuesIn(engines_with_rules()),
                         [](const auto& engine) { return std::string(engine.param); });

}  // namespace
}  // namespace kernelpath::features
