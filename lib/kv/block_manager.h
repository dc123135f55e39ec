#pragma once

#include "kv/block_pool.h"

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kernelpath::kv {

// What a sequence is known by.
using SequenceId = std::int64_t;

// Block `to` is to become what block `from` is, in every layer.
struct BlockCopy {
  BlockId from = 0;
  BlockId to = 0;
};

// Which blocks hold the tokens of which sequence. Sequences with the same beginning share blocks;
// who writes into a shared one gets a copy first. Holds no keys or values: see PagedStorage. Sizes
// count tokens.
class BlockManager {
 public:
  BlockManager(std::int64_t num_blocks, std::int64_t page_size);

  [[nodiscard]] std::int64_t page_size() const { return page_size_; }
  // The longest sequence that an empty cache can hold.
  [[nodiscard]] std::int64_t capacity() const { return pool_.num_blocks() * page_size_; }
  // Whether `tokens` more tokens of a new sequence would fit.
  [[nodiscard]] bool has_room(std::int64_t tokens) const;
  [[nodiscard]] const BlockPool& pool() const { return pool_; }

  // Begins a sequence with the blocks that already hold its beginning. Returns how many tokens
  // those are; at most tokens.size() - 1, since the last one's logits are what is wanted.
  std::int64_t begin(SequenceId id, std::span<const std::int32_t> tokens);
  // Begins a sequence as a copy of `parent`: all blocks are shared.
  void fork(SequenceId parent, SequenceId id);
  // Makes room for the first `tokens` tokens, and blocks of its own of those that are written next:
  // the tokens behind what begin() and computed() have stated. False, with nothing changed, where
  // that takes more blocks than there are.
  bool extend(SequenceId id, std::int64_t tokens);
  // The first tokens.size() tokens are in the cache now; full blocks may be shared from here on.
  void computed(SequenceId id, std::span<const std::int32_t> tokens);
  // Like computed(), but nothing of it is for other sequences.
  void computed_privately(SequenceId id, std::int64_t tokens);
  // Ends a sequence. What may be shared stays until its room is needed.
  void release(SequenceId id);

  // The blocks of a sequence, in the order of its tokens; good until the next call that changes it.
  [[nodiscard]] std::span<const BlockId> block_table(SequenceId id) const;

  // The copies that must be made, in this order, before the next step writes into the cache.
  [[nodiscard]] std::vector<BlockCopy> take_copies() { return std::exchange(copies_, {}); }

 private:
  struct Sequence {
    std::vector<BlockId> blocks;
    std::int64_t filled = 0;     // tokens in the cache
    std::int64_t published = 0;  // blocks that were published or found so
  };

  [[nodiscard]] bool may_write(BlockId block) const {
    return pool_.users(block) == 1 && !pool_.is_published(block);
  }

  std::int64_t page_size_;
  BlockPool pool_;
  std::unordered_map<SequenceId, Sequence> sequences_;
  std::vector<BlockCopy> copies_;
};

}  // namespace kernelpath::kv
