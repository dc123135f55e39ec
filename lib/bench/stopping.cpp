#include "bench/stopping.h"

#include "bench/statistics.h"

#include <cmath>

namespace kernelpath::bench {
namespace {

// The noise counts as settled when this many estimates of it, one a sample, lie this close
// together.
constexpr std::size_t kSettledEstimates = 64;
constexpr double kSettledSpread = 0.05;

}  // namespace

double Stopping::noise() const {
  const auto count = static_cast<double>(samples_.size());
  if (samples_.size() < 2 || mean_ <= 0) return 0;
  return std::sqrt(squares_ / (count - 1)) / mean_;
}

bool Stopping::is_stable() const {
  if (noises_.size() < kSettledEstimates) return false;
  const std::vector<double> recent(noises_.begin(), noises_.end());
  return summarise(recent).noise < kSettledSpread;
}

StopReason Stopping::add(double seconds, std::int64_t launches, double elapsed_s) {
  const double one = seconds / static_cast<double>(launches);
  samples_.push_back(one);
  total_s_ += seconds;
  const double before = one - mean_;
  mean_ += before / static_cast<double>(samples_.size());
  squares_ += before * (one - mean_);
  noises_.push_back(noise());
  if (noises_.size() > kSettledEstimates) noises_.pop_front();

  const auto count = static_cast<std::int64_t>(samples_.size());
  if (count >= rule_.min_samples && total_s_ >= rule_.min_time_s) {
    // One sample has no deviation: it says nothing about noise.
    if (count > 1 && noise() <= rule_.max_noise) return StopReason::kQuiet;
    if (is_stable()) return StopReason::kStable;
  }
  return elapsed_s >= rule_.timeout_s ? StopReason::kTimeout : StopReason::kRunning;
}

}  // namespace kernelpath::bench
