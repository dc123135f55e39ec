#pragma once

#include "tokenizer/token_id.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kernelpath::tokenizer {

// What two neighbouring tokens become. A lower rank goes first.
struct Merge {
  std::uint32_t rank = 0;
  TokenId id = kNoToken;
};

// From pairs of numbers to merges: open addressing, since merging is little else than looking up
// pairs that are mostly not there.
class MergeTable {
 public:
  explicit MergeTable(std::size_t count);

  // Replaces what the pair had. At most the `count` of the constructor may be added.
  void set(std::uint32_t left, std::uint32_t right, Merge merge);
  [[nodiscard]] const Merge* find(std::uint32_t left, std::uint32_t right) const;

 private:
  struct Slot {
    std::uint64_t key = kFree;
    Merge merge;
  };
  // No pair of token ids or code points is this.
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};

  [[nodiscard]] std::size_t slot_of(std::uint64_t key) const;

  std::vector<Slot> slots_;
};

// Merges neighbours, lowest rank first, then leftmost, until no pair of neighbours has a merge.
// Takes time in proportion to n log n. Returns how many candidates were looked at.
std::size_t merge_tokens(std::vector<TokenId>& tokens, const MergeTable& merges);

}  // namespace kernelpath::tokenizer
