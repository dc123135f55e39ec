#include "bench/stopping.h"

#include "bench/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kernelpath::bench {
namespace {

TEST(Summarise, OddAndEvenCounts_GiveTheMedian) {
  const std::vector<double> odd = {3, 1, 2};
  EXPECT_DOUBLE_EQ(summarise(odd).median, 2);
  const std::vector<double> even = {4, 1, 2, 3};
  EXPECT_DOUBLE_EQ(summarise(even).median, 2.5);
  EXPECT_DOUBLE_EQ(summarise(even).mean, 2.5);
  EXPECT_DOUBLE_EQ(summarise(even).least, 1);
  EXPECT_DOUBLE_EQ(summarise(even).most, 4);
}

TEST(Summarise, Noise_IsTheSampleDeviationOverTheMean) {
  // Deviation of 2, 4, 4, 4, 5, 5, 7, 9 with n - 1: sqrt(32 / 7), mean 5.
  const std::vector<double> samples = {2, 4, 4, 4, 5, 5, 7, 9};
  EXPECT_NEAR(summarise(samples).noise, std::sqrt(32.0 / 7.0) / 5.0, 1e-12);
}

TEST(Summarise, NoneAndOne_HaveNoNoise) {
  EXPECT_DOUBLE_EQ(summarise({}).median, 0);
  const std::vector<double> one = {4};
  EXPECT_DOUBLE_EQ(summarise(one).median, 4);
  EXPECT_DOUBLE_EQ(summarise(one).noise, 0);
}

TEST(Stopping, QuietSamples_EndAtTheLeastCount) {
  Stopping stopping({.min_samples = 10, .max_noise = 0.01, .min_time_s = 0, .timeout_s = 100});
  for (int i = 1; i < 10; ++i) EXPECT_EQ(stopping.add(1, 1, i), StopReason::kRunning);
  EXPECT_EQ(stopping.add(1, 1, 10), StopReason::kQuiet);
  EXPECT_EQ(stopping.samples().size(), 10U);
}

TEST(Stopping, TooLittleTime_GoesOnPastTheLeastCount) {
  Stopping stopping({.min_samples = 2, .max_noise = 0.01, .min_time_s = 0.5, .timeout_s = 100});
  for (int i = 1; i < 5; ++i) EXPECT_EQ(stopping.add(0.1, 1, i * 0.1), StopReason::kRunning);
  EXPECT_EQ(stopping.add(0.1, 1, 0.5), StopReason::kQuiet);
}

TEST(Stopping, OneSample_SaysNothingAboutNoise) {
  Stopping stopping({.min_samples = 1, .max_noise = 0.01, .min_time_s = 0, .timeout_s = 100});
  EXPECT_EQ(stopping.add(1, 1, 1), StopReason::kRunning);
  EXPECT_EQ(stopping.add(1, 1, 2), StopReason::kQuiet);
}

TEST(Stopping, SettledNoise_EndsAsStable) {
  // 10 % of noise that does not change: two values by turns.
  Stopping stopping({.min_samples = 10, .max_noise = 0.005, .min_time_s = 0, .timeout_s = 1e9});
  StopReason reason = StopReason::kRunning;
  int samples = 0;
  while (reason == StopReason::kRunning && samples < 1000) {
    reason = stopping.add(samples % 2 == 0 ? 0.9 : 1.1, 1, samples);
    ++samples;
  }
  EXPECT_EQ(reason, StopReason::kStable);
  EXPECT_LT(samples, 200);
  EXPECT_NEAR(stopping.noise(), 0.1, 0.01);
}

TEST(Stopping, GrowingNoise_EndsAtTheTimeout) {
  Stopping stopping({.min_samples = 10, .max_noise = 0.005, .min_time_s = 0, .timeout_s = 20});
  StopReason reason = StopReason::kRunning;
  int samples = 0;
  while (reason == StopReason::kRunning && samples < 1000) {
    reason = stopping.add(std::pow(2.0, samples), 1, samples);
    ++samples;
  }
  EXPECT_EQ(reason, StopReason::kTimeout);
  EXPECT_EQ(samples, 21);
}

TEST(Stopping, Samples_AreOfOneLaunch) {
  Stopping stopping({.min_samples = 2, .max_noise = 1, .min_time_s = 0, .timeout_s = 100});
  stopping.add(2.0, 20, 2);
  EXPECT_DOUBLE_EQ(stopping.samples().front(), 0.1);
}

TEST(Stopping, RunningNoise_AgreesWithTheSummary) {
  Stopping stopping({.min_samples = 100, .max_noise = 0, .min_time_s = 0, .timeout_s = 1e9});
  for (int i = 0; i < 50; ++i) stopping.add(1.0 + 0.01 * ((i * 7) % 13), 1, i);
  EXPECT_NEAR(stopping.noise(), summarise(stopping.samples()).noise, 1e-12);
}

}  // namespace
}  // namespace kernelpath::bench
