#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kernelpath::runtime {

// Speculation without a draft model: looks for the last `longest` … `shortest` tokens earlier in
// the sequence and proposes what followed there.
struct NgramProposer {
  std::int64_t shortest = 1;
  std::int64_t longest = 3;

  // At most `count` tokens; none where nothing repeats. The longest match wins, and among equals
  // the latest. Cost: length of the sequence times `longest`.
  [[nodiscard]] std::vector<std::int32_t> propose(std::span<const std::int32_t> tokens,
                                                  std::int64_t count) const;
};

}  // namespace kernelpath::runtime
