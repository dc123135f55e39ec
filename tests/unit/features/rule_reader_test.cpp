#include "features/rule_table.h"

#include <gmock/gmock.h>

namespace kernelpath::features {
namespace {

constexpr const char* kFacts =
    R"({"fields": [{"name": "device.sm", "type": "integer", "kind": "device"}]})";

std::string file_with(const std::string& rule) {
  return R"({"engine": "test", "project": "Test", "versions": ["1"],
    "sources": {"s": {"file": "f", "version": "v"}},
    "fields": [{"name": "size", "type": "integer", "default": 1}],
    "rules": [)" +
         rule + "]}";
}

std::string rule(const std::string& when, const std::string& more = "") {
  return R"({"id": "R", "level": "error", "stage": "field", "source": "s", "at": "size", "when": ")" +
         when + R"(", "message": "size {size}", "why": "w", "fix": "f",
      "cases": {"hit": [{"size": 0}], "near_miss": [{}]})" +
         more + "}";
}

Result<std::unique_ptr<const RuleTable>> read(const std::string& rules) {
  const auto facts = json::parse_object(kFacts, "facts.json");
  const auto document = json::parse_object(rules, "test.json");
  return read_rule_table(*facts, *document);
}

TEST(ReadRuleTable, GoodFile_IsRead) {
  const auto table = read(file_with(rule("size < 1")));
  ASSERT_TRUE(table.has_value()) << table.error().text();
  const Rule* const found = (*table)->find("r");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->source.project, "Test");
  EXPECT_EQ(found->hits.size(), 1U);
}

TEST(ReadRuleTable, BrokenFiles_NameTheRuleAndTheFault) {
  const auto message = [](const std::string& rules) {
    const auto table = read(file_with(rules));
    return table ? std::string("no error") : table.error().text();
  };
  EXPECT_THAT(message(rule("siz < 1")), testing::HasSubstr("rule R: when: offset 0"));
  EXPECT_THAT(message(rule("size")), testing::HasSubstr("true or false"));
  EXPECT_THAT(message(rule("size < 1") + "," + rule("size < 2")), testing::HasSubstr("twice"));
  EXPECT_THAT(message(rule("size < 1", R"(, "whne": 1)")),
              testing::HasSubstr("unknown key 'whne'"));
  EXPECT_THAT(message(rule("size < 1", R"(, "effects": [{"name": "x"}])")),
              testing::HasSubstr("either 'value' or 'say'"));
  EXPECT_THAT(message(R"({"id": "R"})"), testing::HasSubstr("rule R: 'level' is missing"));
}

TEST(ReadRuleTable, FieldThatStandsTwice_IsRefused) {
  const auto facts = json::parse_object(
      R"({"fields": [{"name": "a", "type": "any"}, {"name": "a", "type": "any"}]})", "facts.json");
  const auto rules = json::parse_object(file_with(""), "test.json");
  EXPECT_FALSE(read_rule_table(*facts, *rules).has_value());
}

}  // namespace
}  // namespace kernelpath::features
