#include "runtime/expectation.h"

#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace kernelpath::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<Expectation> load(std::string_view text) {
  const std::string path = ::testing::TempDir() + "/expectation_test.json";
  EXPECT_TRUE(write_file(path, text));
  return load_expectation(path);
}

ExpectedRun run_of(std::vector<std::int32_t> output, std::vector<double> gaps) {
  return {.prompt_ids = {1}, .output_ids = std::move(output), .gaps = std::move(gaps)};
}

TEST(LoadExpectation, Runs_AreRead) {
  const Expectation expectation = load(R"({"name": "tiny", "prompts": [
             {"id": 4, "text": "Hi", "prompt_ids": [1, 2], "output_ids": [3, 4], "gaps": [0.5, 1]},
             {"text": null, "prompt_ids": [1], "output_ids": [3]}]})")
                                      .value();
  EXPECT_EQ(expectation.name, "tiny");
  ASSERT_EQ(expectation.runs.size(), 2U);
  EXPECT_EQ(expectation.runs[0].id, 4);
  EXPECT_EQ(expectation.runs[0].text, "Hi");
  EXPECT_THAT(expectation.runs[0].prompt_ids, ElementsAre(1, 2));
  EXPECT_THAT(expectation.runs[0].gaps, ElementsAre(0.5, 1));
  EXPECT_EQ(expectation.runs[1].id, 1);
  EXPECT_FALSE(expectation.runs[1].text);
  EXPECT_THAT(expectation.runs[1].gaps, ElementsAre(std::numeric_limits<double>::infinity()));
}

TEST(LoadExpectation, WrongShapes_AreNamedByPointer) {
  const auto place = [](std::string_view text) {
    const Result<Expectation> expectation = load(text);
    return expectation ? std::string("accepted") : expectation.error().where;
  };
  EXPECT_EQ(place("{}"), "/prompts");
  EXPECT_EQ(place(R"({"prompts": []})"), "/prompts");
  EXPECT_EQ(place(R"({"prompts": [{"output_ids": [1]}]})"), "/prompts/0/prompt_ids");
  EXPECT_EQ(place(R"({"prompts": [{"prompt_ids": [1], "output_ids": [1.5]}]})"),
            "/prompts/0/output_ids/0");
  EXPECT_EQ(place(R"({"prompts": [{"prompt_ids": [1], "output_ids": [1], "gaps": []}]})"),
            "/prompts/0/gaps");
  EXPECT_EQ(place(R"({"prompts": [{"prompt_ids": [1], "output_ids": [1, 2], "gaps": [1, NaN]}]})"),
            "/prompts/0/gaps/1");
  EXPECT_EQ(place(R"({"prompts": [{"prompt_ids": [1], "output_ids": [1], "gaps": [-0.5]}]})"),
            "/prompts/0/gaps/0");
  EXPECT_EQ(place(R"({"prompts": [{"id": 1, "prompt_ids": [1], "output_ids": [1]},
                                  {"prompt_ids": [2], "output_ids": [1]}]})"),
            "/prompts/1/id");
  EXPECT_EQ(place(R"({"prompts": [{"text": 1, "prompt_ids": [1], "output_ids": [1]}]})"),
            "/prompts/0/text");
}

TEST(FirstDifference, EqualTokens_HaveNone) {
  EXPECT_FALSE(first_difference(run_of({5, 6}, {1, 1}), std::vector<std::int32_t>{5, 6}));
}

TEST(FirstDifference, OtherToken_IsFoundAtItsStep) {
  const auto difference =
      first_difference(run_of({5, 6, 7}, {1, 2, 3}), std::vector<std::int32_t>{5, 9, 7});
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->step, 1);
  EXPECT_EQ(difference->expected, 6);
  EXPECT_EQ(difference->found, 9);
  EXPECT_EQ(difference->gap, 2);
}

TEST(FirstDifference, MissingToken_IsADifference) {
  const auto difference = first_difference(run_of({5, 6}, {1, 1}), std::vector<std::int32_t>{5});
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->step, 1);
  EXPECT_FALSE(difference->found);
}

TEST(FirstDifference, NearTie_EndsTheComparison) {
  const std::vector<std::int32_t> found = {5, 9, 9};
  EXPECT_FALSE(first_difference(run_of({5, 6, 7}, {1, 0.0009, 3}), found));
  EXPECT_TRUE(first_difference(run_of({5, 6, 7}, {1, 0.001, 3}), found));
}

}  // namespace
}  // namespace kernelpath::runtime
