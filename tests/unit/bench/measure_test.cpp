#include "bench/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace kernelpath::bench {
namespace {

// Tells times instead of taking them.
class Told : public Workload {
 public:
  explicit Told(double seconds, std::int64_t least = 1) : seconds_(seconds), least_(least) {}
  Result<double> run(std::int64_t launches) override {
    ++runs;
    launched += launches;
    if (fails_after > 0 && runs > fails_after) {
      return fail({.code = ErrorCode::kRuntime, .message = "the launch failed"});
    }
    return seconds_ * static_cast<double>(launches);
  }
  [[nodiscard]] std::int64_t least_launches() const override { return least_; }

  int runs = 0;
  int fails_after = 0;
  std::int64_t launched = 0;

 private:
  double seconds_;
  std::int64_t least_;
};

const MeasureOptions kQuick{
    .rule = {.min_samples = 5, .max_noise = 0.01, .min_time_s = 0, .timeout_s = 10}};

TEST(MeasureTogether, ShortLaunches_AreTimedManyAtOnce) {
  Told work(1e-5);
  Workload* const one = &work;
  const auto out = measure_together({&one, 1}, kQuick);
  ASSERT_TRUE(out);
  EXPECT_EQ(out->front().launches, 200);  // 2 ms of 10 us
  EXPECT_NEAR(out->front().summary.median, 1e-5, 1e-12);
  EXPECT_EQ(out->front().stop, StopReason::kQuiet);
  EXPECT_EQ(out->front().samples.size(), 5U);
}

TEST(MeasureTogether, LeastLaunches_AreKept) {
  Told work(1.0, 20);
  Workload* const one = &work;
  const auto out = measure_together({&one, 1}, kQuick);
  ASSERT_TRUE(out);
  EXPECT_EQ(out->front().launches, 20);
  EXPECT_DOUBLE_EQ(out->front().summary.median, 1.0);
}

TEST(MeasureTogether, SeveralWorkloads_GoByTurnsAndANullOneIsEmpty) {
  Told a(1.0);
  Told b(2.0);
  const std::array<Workload*, 3> all = {&a, nullptr, &b};
  const auto out = measure_together(all, kQuick);
  ASSERT_TRUE(out);
  EXPECT_DOUBLE_EQ((*out)[0].summary.median, 1.0);
  EXPECT_TRUE((*out)[1].samples.empty());
  EXPECT_DOUBLE_EQ((*out)[2].summary.median, 2.0);
  EXPECT_EQ(a.runs, b.runs);
}

TEST(MeasureTogether, OneLaunch_IsOneLaunch) {
  Told work(1.0, 20);
  Workload* const one = &work;
  MeasureOptions options = kQuick;
  options.one_launch = true;
  const auto out = measure_together({&one, 1}, options);
  ASSERT_TRUE(out);
  EXPECT_EQ(work.launched, 1);
  EXPECT_EQ(out->front().stop, StopReason::kOneLaunch);
}

TEST(MeasureTogether, Interruption_KeepsWhatThereIs) {
  Told work(1.0);
  Workload* const one = &work;
  MeasureOptions options = kQuick;
  options.interrupted = [&] { return work.runs >= 5; };
  const auto out = measure_together({&one, 1}, options);
  ASSERT_TRUE(out);
  EXPECT_EQ(out->front().stop, StopReason::kInterrupted);
  EXPECT_EQ(out->front().samples.size(), 3U);  // two runs warm up
}

TEST(MeasureTogether, FailingLaunch_IsTheError) {
  Told work(1.0);
  work.fails_after = 3;
  Workload* const one = &work;
  const auto out = measure_together({&one, 1}, kQuick);
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().message, "the launch failed");
}

}  // namespace
}  // namespace kernelpath::bench
