#include "runtime/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>

namespace kernelpath::runtime {
namespace {

using ::testing::ElementsAre;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<std::int32_t> draws(const SamplingParams& params, const std::vector<float>& logits,
                                int count) {
  Sampler sampler(params, {});
  std::vector<std::int32_t> out;
  for (int i = 0; i < count; ++i) {
    std::vector<float> row = logits;
    out.push_back(sampler.sample(row, 0).value().token);
  }
  return out;
}

TEST(Argmax, EqualLogits_GiveTheLowestToken) {
  EXPECT_EQ(argmax(std::vector<float>{1, 3, 3, 2}), 1);
}

TEST(Argmax, NaN_NeverWins) {
  EXPECT_EQ(argmax(std::vector<float>{kNan, 1, kNan, 2}), 3);
  EXPECT_EQ(argmax(std::vector<float>{kNan, kNan}), -1);
}

TEST(Sampler, Greedy_TakesTheLargestLogit) {
  EXPECT_THAT(draws({}, {0.1F, 2.0F, -1.0F}, 3), ElementsAre(1, 1, 1));
}

TEST(Sampler, LogitsWithoutAFiniteMaximum_AreARuntimeError) {
  std::vector<float> logits = {kNan, kNan};
  const Result<Sampled> sampled = Sampler({}, {}).sample(logits, 0);
  ASSERT_FALSE(sampled);
  EXPECT_EQ(sampled.error().code, ErrorCode::kRuntime);
}

TEST(Sampler, Logprobs_AreThoseOfTheModel) {
  // exp: 1, 2, 4 of 7; the temperature does not change them.
  std::vector<float> logits = {0.0F, std::log(2.0F), std::log(4.0F)};
  Sampler sampler({.temperature = 0.1, .top_k = 1}, {});
  const Sampled sampled = sampler.sample(logits, 2).value();
  EXPECT_EQ(sampled.token, 2);
  EXPECT_NEAR(sampled.logprob, std::log(4.0 / 7), 1e-6);
  ASSERT_EQ(sampled.top.size(), 2U);
  EXPECT_EQ(sampled.top[0].token, 2);
  EXPECT_EQ(sampled.top[1].token, 1);
  EXPECT_NEAR(sampled.top[1].logprob, std::log(2.0 / 7), 1e-6);
}

// Sizes around the runs that are summed together, logits from close to hundreds apart.
TEST(Sampler, LogprobsOfManyTokens_AreThoseOfFloat64) {
  std::mt19937 random(5);
  for (const std::size_t count : {1, 63, 64, 255, 256, 257, 5000}) {
    for (const float spread : {0.01F, 3.0F, 300.0F}) {
      std::normal_distribution<float> normal(-2.0F, spread);
      std::vector<float> logits(count);
      for (float& logit : logits) logit = normal(random);
      if (count > 64) logits[64] = -std::numeric_limits<float>::infinity();
      const double largest = *std::ranges::max_element(logits);
      double sum = 0;
      for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
      const Sampled sampled = Sampler({}, {}).sample(logits, 0).value();
      EXPECT_EQ(sampled.token, std::ranges::max_element(logits) - logits.begin());
      EXPECT_NEAR(sampled.logprob, -std::log(sum), 1e-6) << count << " logits, spread " << spread;
    }
  }
}

TEST(Sampler, Frequencies_FollowTheDistribution) {
  std::map<std::int32_t, int> counts;
  constexpr int kDraws = 20'000;
  for (const std::int32_t token : draws({.temperature = 1, .seed = 7},
                                        {std::log(1.0F), std::log(2.0F), std::log(5.0F)}, kDraws)) {
    ++counts[token];
  }
  // Four standard deviations of the rarest.
  EXPECT_NEAR(counts[0] / double{kDraws}, 0.125, 0.01);
  EXPECT_NEAR(counts[1] / double{kDraws}, 0.25, 0.013);
  EXPECT_NEAR(counts[2] / double{kDraws}, 0.625, 0.014);
}

TEST(Sampler, SameSeed_SameDraws) {
  const std::vector<float> logits = {0, 0, 0, 0, 0, 0, 0, 0};
  const SamplingParams params = {.temperature = 1, .seed = 3};
  EXPECT_EQ(draws(params, logits, 50), draws(params, logits, 50));
  SamplingParams other = params;
  other.seed = 4;
  EXPECT_NE(draws(params, logits, 50), draws(other, logits, 50));
}

TEST(Sampler, TopK_LeavesTheBest) {
  for (const std::int32_t token :
       draws({.temperature = 5, .top_k = 2}, {1, 0.9F, 0.8F, 0.7F}, 200)) {
    EXPECT_LT(token, 2);
  }
}

TEST(Sampler, TopP_KeepsTheSmallestSetThatReachesIt) {
  // 0.5, 0.3, 0.2: 0.5 alone reaches 0.5, not 0.51.
  const std::vector<float> logits = {std::log(0.5F), std::log(0.3F), std::log(0.2F)};
  for (const std::int32_t token : draws({.temperature = 1, .top_p = 0.49}, logits, 200)) {
    EXPECT_EQ(token, 0);
  }
  std::map<std::int32_t, int> counts;
  for (const std::int32_t token : draws({.temperature = 1, .top_p = 0.6}, logits, 500)) {
    ++counts[token];
  }
  EXPECT_GT(counts[1], 0);
  EXPECT_EQ(counts[2], 0);
}

TEST(Sampler, MinP_IsAShareOfTheLargestProbability) {
  const std::vector<float> logits = {std::log(0.5F), std::log(0.3F), std::log(0.2F)};
  std::map<std::int32_t, int> counts;
  for (const std::int32_t token : draws({.temperature = 1, .min_p = 0.5}, logits, 500)) {
    ++counts[token];
  }
  EXPECT_GT(counts[1], 0);
  EXPECT_EQ(counts[2], 0);
}

TEST(Sampler, RepetitionPenalty_CountsThePrompt) {
  const std::vector<std::int32_t> prompt = {1};
  std::vector<float> logits = {1.5F, 2.0F, -1.0F};
  EXPECT_EQ(Sampler({.repetition_penalty = 2}, prompt).sample(logits, 0).value().token, 0);
}

TEST(Sampler, FrequencyPenalty_GrowsWithEachUse) {
  EXPECT_THAT(draws({.frequency_penalty = 0.6}, {1.0F, 0.0F}, 4), ElementsAre(0, 0, 1, 0));
}

TEST(Sampler, PresencePenalty_CountsOnce) {
  EXPECT_THAT(draws({.presence_penalty = 0.6}, {1.0F, 0.0F}, 4), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(draws({.presence_penalty = 1.5}, {1.0F, 0.0F}, 3), ElementsAre(0, 1, 0));
}

TEST(CheckSampling, ValuesOutOfRange_AreNamed) {
  const auto field = [](const SamplingParams& params) {
    const Result<void> checked = check_sampling(params);
    return checked ? std::string() : checked.error().where;
  };
  EXPECT_EQ(field({}), "");
  EXPECT_EQ(field({.temperature = -1}), "temperature");
  EXPECT_EQ(field({.temperature = std::nan("")}), "temperature");
  EXPECT_EQ(field({.top_k = -1}), "top_k");
  EXPECT_EQ(field({.top_p = 0}), "top_p");
  EXPECT_EQ(field({.top_p = 1.01}), "top_p");
  EXPECT_EQ(field({.min_p = 1.5}), "min_p");
  EXPECT_EQ(field({.repetition_penalty = 0}), "repetition_penalty");
  EXPECT_EQ(field({.presence_penalty = 2.5}), "presence_penalty");
  EXPECT_EQ(field({.frequency_penalty = -2.5}), "frequency_penalty");
}

}  // namespace
}  // namespace kernelpath::runtime
