#include "cli/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelpath::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ParseArguments, ListBeforeModel_DoesNotSwallowIt) {
  const Result<Arguments> parsed = parse_arguments({"--engine", "a,b", "config.json"});
  ASSERT_TRUE(parsed);
  EXPECT_THAT(parsed->of(Option::kEngine), ElementsAre("a,b"));
  EXPECT_THAT(parsed->models, ElementsAre("config.json"));
}

TEST(ParseArguments, Repetition_KeepsAllInOrder) {
  const Result<Arguments> parsed =
      parse_arguments({"--set", "a.b=c=d,e", "m", "--set=f.g=1", "-vv", "-v"});
  ASSERT_TRUE(parsed);
  EXPECT_THAT(parsed->of(Option::kSet), ElementsAre("a.b=c=d,e", "f.g=1"));
  EXPECT_EQ(parsed->of(Option::kVerbose).size(), 3);
  EXPECT_THAT(parsed->models, ElementsAre("m"));
}

TEST(ParseArguments, NegativeNumber_IsAValue) {
  const Result<Arguments> parsed = parse_arguments({"--page-size", "-16", "m"});
  ASSERT_TRUE(parsed);
  EXPECT_THAT(parsed->of(Option::kPageSize), ElementsAre("-16"));
}

TEST(ParseArguments, LoneDash_IsAModel) {
  const Result<Arguments> parsed = parse_arguments({"-", "--json"});
  ASSERT_TRUE(parsed);
  EXPECT_THAT(parsed->models, ElementsAre("-"));
}

TEST(ParseArguments, AfterDoubleDash_AllAreModels) {
  const Result<Arguments> parsed = parse_arguments({"a", "--", "-x", "--why"});
  ASSERT_TRUE(parsed);
  EXPECT_THAT(parsed->models, ElementsAre("a", "-x", "--why"));
  EXPECT_THAT(parsed->of(Option::kWhy), IsEmpty());
}

TEST(ParseArguments, HelpWord_StandsAfterTheEqualsSignOnly) {
  const Result<Arguments> parsed = parse_arguments({"--help", "word"});
  ASSERT_TRUE(parsed);
  EXPECT_THAT(parsed->of(Option::kHelp), ElementsAre(""));
  EXPECT_THAT(parsed->models, ElementsAre("word"));
  const Result<Arguments> search = parse_arguments({"--help=kv"});
  ASSERT_TRUE(search);
  EXPECT_THAT(search->of(Option::kHelp), ElementsAre("kv"));
}

TEST(ParseArguments, UnknownOption_NamesTheNearest) {
  const Result<Arguments> parsed = parse_arguments({"m", "--devcie=h200"});
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, ErrorCode::kUsageUnknown);
  EXPECT_EQ(parsed.error().value, "--devcie");
  EXPECT_THAT(parsed.error().near_matches, testing::Contains("--device"));
}

TEST(ParseArguments, UnknownShortOption_IsRefused) {
  const Result<Arguments> parsed = parse_arguments({"-x", "m"});
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, ErrorCode::kUsageUnknown);
}

TEST(ParseArguments, MissingValue_NamesTheOption) {
  const Result<Arguments> parsed = parse_arguments({"m", "--kv"});
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, ErrorCode::kUsage);
  EXPECT_EQ(parsed.error().where, "--kv-cache-dtype");
}

TEST(ParseArguments, EmptyValueAfterEquals_DoesNotTakeTheModel) {
  const Result<Arguments> parsed = parse_arguments({"--device=", "m"});
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().where, "--device");
}

TEST(ParseArguments, OptionOfAnotherProgram_IsNamedAsSuch) {
  const Result<Arguments> parsed = parse_arguments({"m", "--suggest"}, ProgramKind::kInspect);
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, ErrorCode::kUsageUnknown);
  EXPECT_NE(parsed.error().message.find("another program"), std::string::npos);
  EXPECT_TRUE(parse_arguments({"m", "--suggest"}, ProgramKind::kValidate));
}

}  // namespace
}  // namespace kernelpath::cli
