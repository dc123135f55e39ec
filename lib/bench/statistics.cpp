#include "bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace kernelpath::bench {

Summary summarise(std::span<const double> samples) {
  if (samples.empty()) return {};
  std::vector<double> sorted(samples.begin(), samples.end());
  std::ranges::sort(sorted);
  const std::size_t middle = sorted.size() / 2;
  const auto count = static_cast<double>(sorted.size());
  Summary out{.least = sorted.front(), .most = sorted.back()};
  out.median =
      sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2.0;
  out.mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / count;
  if (sorted.size() < 2 || out.mean <= 0) return out;
  double squares = 0;
  for (const double sample : sorted) squares += (sample - out.mean) * (sample - out.mean);
  out.noise = std::sqrt(squares / (count - 1)) / out.mean;
  return out;
}

}  // namespace kernelpath::bench
