#include "cli/option_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace kernelpath::cli {
namespace {

TEST(OptionTable, Names_AreUniqueAmongAllSpellings) {
  std::set<std::string> seen;
  for (const OptionRow& row : option_table()) {
    EXPECT_TRUE(seen.insert(std::string(row.name)).second) << row.name;
    if (!row.alias.empty()) {
      EXPECT_TRUE(seen.insert(std::string(row.alias)).second) << row.alias;
    }
    if (row.short_name != 0) {
      EXPECT_TRUE(seen.insert(std::string(1, row.short_name)).second) << row.short_name;
    }
  }
}

TEST(OptionTable, EveryRow_SaysWhatItIs) {
  for (const OptionRow& row : option_table()) {
    EXPECT_FALSE(row.help.empty()) << row.name;
    EXPECT_EQ(row.help.back(), '.') << row.name;
    const bool flag = row.kind == ValueKind::kFlag || row.kind == ValueKind::kCount;
    EXPECT_EQ(flag, row.value_name.empty()) << row.name;
  }
}

TEST(FindOption, AliasUnderscoresAndDashes_GiveTheSameRow) {
  const OptionRow* row = find_option("kv-cache-dtype");
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->id, Option::kKv);
  EXPECT_EQ(find_option("kv"), row);
  EXPECT_EQ(find_option("kv_cache_dtype"), row);
  EXPECT_EQ(find_option("--kv-cache-dtype"), row);
  EXPECT_EQ(find_option("kv-cache-dtyp"), nullptr);
}

TEST(NearOptions, Misspelling_GivesTheName) {
  EXPECT_THAT(near_options("--devcie"), testing::Contains("--device"));
  EXPECT_THAT(near_options("--kv_cache_dtype"), testing::Contains("--kv-cache-dtype"));
}

TEST(OptionSignature, AliasAndShortName_AreShown) {
  EXPECT_EQ(option_signature(option_row(Option::kKv)), "--kv-cache-dtype, --kv TYPE");
  EXPECT_EQ(option_signature(option_row(Option::kFormat)), "-f, --format NAME");
  EXPECT_EQ(option_signature(option_row(Option::kHelp)), "-h, --help[=WORD]");
}

TEST(OptionsOf, AnotherProgramsOptions_AreLeftOut) {
  const auto has = [](ProgramKind program, Option option) {
    for (const OptionRow* row : options_of(program)) {
      if (row->id == option) return true;
    }
    return false;
  };
  EXPECT_TRUE(has(ProgramKind::kInspect, Option::kWhyNot));
  EXPECT_FALSE(has(ProgramKind::kValidate, Option::kWhyNot));
  EXPECT_FALSE(has(ProgramKind::kInspect, Option::kSuggest));
  EXPECT_TRUE(has(ProgramKind::kValidate, Option::kSuggest));
  EXPECT_TRUE(has(ProgramKind::kInspect, Option::kKv));
  EXPECT_TRUE(has(ProgramKind::kValidate, Option::kKv));
}

TEST(EnvironmentName, Dashes_BecomeUnderscores) {
  EXPECT_EQ(environment_name("kv-cache-dtype"), "KERNELPATH_KV_CACHE_DTYPE");
}

}  // namespace
}  // namespace kernelpath::cli
