#pragma once

#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

namespace kernelpath::bench {

// When a measurement has said enough. All of min_samples and min_time_s first; then it ends when
// its noise is at most max_noise, or no longer changes; at timeout_s it ends in any case. The
// method is nvbench's (stdrel_criterion).
struct StoppingRule {
  std::int64_t min_samples = 10;
  double max_noise = 0.005;  // relative standard deviation
  double min_time_s = 0.5;   // of samples together
  double timeout_s = 15.0;   // of wall time, pauses between samples included
};

enum class StopReason : std::uint8_t {
  kRunning,
  kQuiet,        // noise within the bound
  kStable,       // noise beyond the bound, and more samples do not change it
  kTimeout,      // neither, and no time left
  kInterrupted,  // somebody asked the program to stop
  kOneLaunch,    // --profile: a single launch was asked for
};
constexpr std::string_view stop_reason_name(StopReason reason) {
  switch (reason) {
    case StopReason::kRunning:
      return "running";
    case StopReason::kQuiet:
      return "quiet";
    case StopReason::kStable:
      return "stable";
    case StopReason::kTimeout:
      return "timeout";
    case StopReason::kInterrupted:
      return "interrupted";
    case StopReason::kOneLaunch:
      return "one-launch";
  }
  return "";
}

// Collects samples until the rule is met. Pure: the caller tells how much time has passed.
class Stopping {
 public:
  explicit Stopping(const StoppingRule& rule) : rule_(rule) {}

  // Adds a sample of `seconds`, which stands for `launches` launches; `elapsed_s` is the wall time
  // since the measurement began. Returns kRunning while more samples are wanted.
  StopReason add(double seconds, std::int64_t launches, double elapsed_s);

  // Seconds of one launch, in the order of the samples.
  [[nodiscard]] const std::vector<double>& samples() const { return samples_; }
  [[nodiscard]] double noise() const;

 private:
  [[nodiscard]] bool is_stable() const;

  StoppingRule rule_;
  std::vector<double> samples_;
  std::deque<double> noises_;  // of the last samples
  double total_s_ = 0;
  // Running mean and sum of squared deviations (Welford): one pass, no cancellation.
  double mean_ = 0;
  double squares_ = 0;
};

}  // namespace kernelpath::bench
