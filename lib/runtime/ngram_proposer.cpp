#include "runtime/ngram_proposer.h"

#include <algorithm>
#include <iterator>

namespace kernelpath::runtime {

std::vector<std::int32_t> NgramProposer::propose(std::span<const std::int32_t> tokens,
                                                 std::int64_t count) const {
  const auto size = static_cast<std::int64_t>(tokens.size());
  for (std::int64_t length = std::min(longest, size - 1); length >= shortest; --length) {
    const auto suffix = tokens.last(static_cast<std::size_t>(length));
    // The last token has nothing behind it, so the match must end before it.
    const auto earlier = tokens.first(static_cast<std::size_t>(size - 1));
    const auto match = std::find_end(earlier.begin(), earlier.end(), suffix.begin(), suffix.end());
    if (match == earlier.end()) continue;
    const std::int64_t next = std::distance(earlier.begin(), match) + length;
    const auto from = tokens.begin() + next;
    return {from, from + std::min(count, size - next)};
  }
  return {};
}

}  // namespace kernelpath::runtime
