#pragma once

#include "base/result.h"
#include "bench/statistics.h"
#include "bench/stopping.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace kernelpath::bench {

// Something that can be launched again and again, with its data in place.
class Workload {
 public:
  virtual ~Workload() = default;
  // Launches `launches` times, one after the other; the seconds that they take together.
  virtual Result<double> run(std::int64_t launches) = 0;
  // Launches of one sample at least: a CUDA graph of one launch would time its replay.
  [[nodiscard]] virtual std::int64_t least_launches() const { return 1; }
};

struct MeasureOptions {
  StoppingRule rule = {};
  bool one_launch = false;  // --profile: one launch and no more
  // Asked between samples: whether to stop at once.
  std::function<bool()> interrupted = [] { return false; };
};

struct Measured {
  std::vector<double> samples = {};  // seconds of one launch
  Summary summary = {};
  std::int64_t launches = 1;  // of one sample
  StopReason stop = StopReason::kRunning;
};

// Samples of several workloads by turns, each until its rule is met: what the machine does
// meanwhile meets all of them alike, so that their ratios hold even where the times swing. A null
// workload gives an empty result. An interruption ends all of them with what they have.
Result<std::vector<Measured>> measure_together(std::span<Workload* const> workloads,
                                               const MeasureOptions& options);

}  // namespace kernelpath::bench
