#include "features/rule_table.h"
#include "features/validate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

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

std::vector<const RuleTable*> all_tables() {
  std::vector<const RuleTable*> out;
  for (const std::string_view engine : engines_with_rules()) {
    for (const RuleTable* table : rule_tables(engine)) out.push_back(table);
  }
  return out;
}

// "vllm_0_33_0"
std::string name_of(const RuleTable& table) {
  std::string out = table.engine + (table.version.empty() ? "" : "_" + table.version);
  for (char& c : out) {
    if (c == '.' || c == '-') c = '_';
  }
  return out;
}

class EveryTable : public testing::TestWithParam<const RuleTable*> {
 protected:
  static const RuleTable& table() { return *GetParam(); }
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

TEST_P(EveryTable, RulesOfAVersion_NameIt) {
  for (const Rule& rule : table().rules) {
    const auto& versions = rule.versions;
    EXPECT_TRUE(versions.empty() ||
                std::find(versions.begin(), versions.end(), table().version) != versions.end())
        << rule.id;
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, EveryTable, testing::ValuesIn(all_tables()),
                         [](const auto& table) { return name_of(*table.param); });

TEST(VersionsOfATable, RulesThatOneVersionHas_AreInThatOneOnly) {
  const RuleTable& older = *find_rule_table("vllm", "0.25.1");
  const RuleTable& newer = *find_rule_table("vllm");
  EXPECT_EQ(newer.version, "0.33.0");
  EXPECT_NE(older.find("VLLM-FLASHINFER-SLIDING-HOPPER"), nullptr);
  EXPECT_EQ(newer.find("VLLM-FLASHINFER-SLIDING-HOPPER"), nullptr);
  EXPECT_EQ(older.find("VLLM-BACKEND-DCP"), nullptr);
  EXPECT_NE(newer.find("VLLM-BACKEND-DCP"), nullptr);
  EXPECT_EQ(find_rule_table("vllm", "0.1.0"), nullptr);
}

}  // namespace
}  // namespace kernelpath::features
