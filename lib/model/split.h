#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace kernelpath::model {

// A run of indices of a tensor's dimension.
struct Run {
  std::int64_t first = 0;
  std::int64_t count = 0;

  [[nodiscard]] constexpr std::int64_t end() const { return first + count; }
  friend bool operator==(const Run&, const Run&) = default;
};

// What a rank keeps of one dimension of a tensor: some runs of it, put together in their order.
struct Split {
  std::size_t dim = 0;
  std::int64_t whole = 0;  // of the dimension in the file; 0: nothing is split
  std::vector<Run> runs = {};

  [[nodiscard]] bool exists() const { return whole > 0; }
  [[nodiscard]] std::int64_t kept() const {
    return std::accumulate(runs.begin(), runs.end(), std::int64_t{0},
                           [](std::int64_t sum, const Run& run) { return sum + run.count; });
  }
  // The same split of a tensor whose dimension `at` has one index for `unit` of this one's.
  [[nodiscard]] Split in_units(std::int64_t unit, std::size_t at) const {
    Split out{.dim = at, .whole = (whole + unit - 1) / unit};
    out.runs.reserve(runs.size());
    for (const Run& run : runs) {
      out.runs.push_back({run.first / unit, (run.count + unit - 1) / unit});
    }
    return out;
  }
  // Whether every run begins at a multiple of `unit`, and ends at one or at the end of all, so that
  // blocks of that size are not cut and lie behind each other as in the file.
  [[nodiscard]] bool keeps_blocks(std::int64_t unit) const {
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const bool last = i + 1 == runs.size();
      if (runs[i].first % unit != 0) return false;
      if (runs[i].count % unit != 0 && !(last && runs[i].end() == whole)) return false;
    }
    return true;
  }
};

}  // namespace kernelpath::model
