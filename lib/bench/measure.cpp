#include "bench/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace kernelpath::bench {
namespace {

// A sample lasts at least this long, so that starting and stopping the clock is no part of it.
constexpr double kLeastSample_s = 0.002;
constexpr std::int64_t kMostLaunches = 4096;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// One workload on its way through the rule.
class Run {
 public:
  Run(Workload* workload, const StoppingRule& rule) : workload_(workload), stopping_(rule) {
    if (workload == nullptr) out_.stop = StopReason::kInterrupted;
  }

  // Launches that are not counted: caches, page tables and clocks settle.
  Result<void> warm_up() {
    if (workload_ == nullptr) return {};
    const std::int64_t least = workload_->least_launches();
    KERNELPATH_TRY(first, workload_->run(least));
    spent_s_ += first;
    KERNELPATH_TRY(second, workload_->run(least));
    spent_s_ += second;
    const double one = second / static_cast<double>(least);
    const double wanted = one > 0 ? std::ceil(kLeastSample_s / one) : 1.0;
    const auto most = static_cast<double>(kMostLaunches);
    out_.launches = std::max(least, static_cast<std::int64_t>(std::clamp(wanted, 1.0, most)));
    return {};
  }

  [[nodiscard]] bool running() const { return out_.stop == StopReason::kRunning; }

  Result<void> sample() {
    const Clock::time_point begin = Clock::now();
    KERNELPATH_TRY(seconds, workload_->run(out_.launches));
    spent_s_ += seconds_since(begin);
    out_.stop = stopping_.add(seconds, out_.launches, spent_s_);
    return {};
  }

  Result<void> one_launch() {
    if (workload_ == nullptr) return {};
    KERNELPATH_TRY(seconds, workload_->run(1));
    stopping_.add(seconds, 1, seconds);
    out_.stop = StopReason::kOneLaunch;
    return {};
  }

  Measured finish() {
    if (out_.stop == StopReason::kRunning) out_.stop = StopReason::kInterrupted;
    out_.samples = stopping_.samples();
    out_.summary = summarise(out_.samples);
    return std::move(out_);
  }

 private:
  Workload* workload_;
  Stopping stopping_;
  Measured out_;
  double spent_s_ = 0;
};

Result<void> run_all(std::vector<Run>& runs, const MeasureOptions& options) {
  for (Run& run : runs) {
    KERNELPATH_CHECK_OK(options.one_launch ? run.one_launch() : run.warm_up());
    if (options.interrupted()) return {};
  }
  if (options.one_launch) return {};
  for (bool any = true; any;) {
    any = false;
    for (Run& run : runs) {
      if (!run.running()) continue;
      if (options.interrupted()) return {};
      KERNELPATH_CHECK_OK(run.sample());
      any = true;
    }
  }
  return {};
}

}  // namespace

Result<std::vector<Measured>> measure_together(std::span<Workload* const> workloads,
                                               const MeasureOptions& options) {
  std::vector<Run> runs;
  runs.reserve(workloads.size());
  for (Workload* const workload : workloads) runs.emplace_back(workload, options.rule);
  KERNELPATH_CHECK_OK(run_all(runs, options));
  std::vector<Measured> out;
  out.reserve(runs.size());
  for (Run& run : runs) out.push_back(run.finish());
  return out;
}

}  // namespace kernelpath::bench
