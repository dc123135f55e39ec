#include "bench/runner.h"

#include "bench/axes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

// What the runner makes of a row, over a device whose times are made up.

namespace kernelpath::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Launches that take the given seconds by turns.
class Scripted : public Workload {
 public:
  explicit Scripted(std::vector<double> seconds) : seconds_(std::move(seconds)) {}
  Result<double> run(std::int64_t launches) override {
    return seconds_[next_++ % seconds_.size()] * static_cast<double>(launches);
  }

 private:
  std::vector<double> seconds_;
  std::size_t next_ = 0;
};

// What the made-up device has.
struct Script {
  std::vector<double> seconds = {0.01};
  std::vector<double> limit_seconds = {};  // none: no limit
  std::optional<Check> check = {};
  std::string throttled = {};
};

class ScriptedJob : public Job {
 public:
  explicit ScriptedJob(Script script) : script_(std::move(script)), own_(script_.seconds) {}
  Result<double> run(std::int64_t launches) override { return own_.run(launches); }
  [[nodiscard]] std::string kernel() const override { return "scripted"; }
  [[nodiscard]] CacheState cache() const override { return CacheState::kMemory; }
  Result<std::optional<Check>> check() override { return script_.check; }
  Result<OwnLimit> limit() override {
    OwnLimit out;
    if (script_.limit_seconds.empty()) return out;
    out.kind = LimitKind::kLinearRead;
    out.workload = std::make_unique<Scripted>(script_.limit_seconds);
    out.amount = 1e6;
    return out;
  }

 private:
  Script script_;
  Scripted own_;
};

class ScriptedTarget : public Target {
 public:
  explicit ScriptedTarget(Script script) : script_(std::move(script)) {}
  [[nodiscard]] const DeviceFacts& facts() const override { return facts_; }
  [[nodiscard]] bool is_cuda() const override { return false; }
  [[nodiscard]] bool has(CaseKind /*kind*/) const override { return true; }
  Result<std::unique_ptr<Job>> prepare(const Shape& /*shape*/, bool /*cold*/) override {
    return std::unique_ptr<Job>(std::make_unique<ScriptedJob>(script_));
  }
  std::string throttled() override { return script_.throttled; }

 private:
  Script script_;
  DeviceFacts facts_;
};

Row row_of(const Script& script, std::int64_t min_samples = 4) {
  RunOptions options;
  options.measure.rule = {
      .min_samples = min_samples, .max_noise = 0.005, .min_time_s = 0, .timeout_s = 1};
  ScriptedTarget target(script);
  Runner runner(target, options);
  return runner.run(expand(CaseKind::kReadCeiling, "", {}, {}).value().front()).front();
}

TEST(Runner, RowWithQuietTimes_IsValid) {
  const Row row = row_of({.seconds = {0.01}, .limit_seconds = {0.008}});
  EXPECT_TRUE(row.valid());
  EXPECT_THAT(row.problems, IsEmpty());
  EXPECT_DOUBLE_EQ(row.own_limit_rate, 1e6 / 0.008);
  EXPECT_DOUBLE_EQ(row.own_limit_noise, 0);
}

TEST(Runner, NoisyRow_IsMarked) {
  const Row row = row_of({.seconds = {0.01, 0.012}});
  EXPECT_FALSE(row.valid());
  EXPECT_THAT(row.problems, ElementsAre(testing::ContainsRegex("^noise [0-9.]+ % is above 0.5 %")));
}

TEST(Runner, NoisyLimit_IsMarkedAsThat) {
  const Row row = row_of({.seconds = {0.01}, .limit_seconds = {0.008, 0.010}});
  EXPECT_FALSE(row.valid());
  EXPECT_GT(row.own_limit_noise, 0.05);
  EXPECT_THAT(row.problems,
              ElementsAre(testing::ContainsRegex("^noise [0-9.]+ % of the limit at its size")));
}

TEST(Runner, WrongResult_IsMarkedWithWhatItWasComparedWith) {
  const Row row =
      row_of({.check = Check{.error = 0.5, .bound = 0.01, .against = "float64 reference"}});
  EXPECT_THAT(row.problems,
              ElementsAre("wrong: differs from the float64 reference by 0.5, 0.01 is allowed"));
}

TEST(Runner, HeldClocks_AreNamed) {
  const Row row = row_of({.throttled = "clocks are held down: power cap"});
  EXPECT_THAT(row.problems, ElementsAre("clocks are held down: power cap"));
}

TEST(Runner, TooFewSamplesInTime_AreNamed) {
  Script script;
  script.seconds = {0.6};  // by its own clock; the rule's is the wall's
  const Row row = row_of(script, 1 << 30);
  ASSERT_FALSE(row.problems.empty());
  EXPECT_THAT(row.problems.front(), testing::ContainsRegex("samples when the time was over"));
}

}  // namespace
}  // namespace kernelpath::bench
