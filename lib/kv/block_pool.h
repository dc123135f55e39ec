#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace kernelpath::kv {

using BlockId = std::int32_t;

// The blocks (pages) of a cache: who uses them and what full ones hold. Blocks that nobody uses any
// more keep what they hold until their room is needed; the one that was given back first goes
// first.
class BlockPool {
 public:
  explicit BlockPool(std::int64_t num_blocks);

  [[nodiscard]] std::int64_t num_blocks() const {
    return static_cast<std::int64_t>(blocks_.size());
  }
  // Blocks that allocate() can still give.
  [[nodiscard]] std::int64_t available() const {
    return static_cast<std::int64_t>(free_.size() + idle_.size());
  }

  // A block with one user and unspecified contents; nothing where all are in use.
  std::optional<BlockId> allocate();
  // One user more, or one less.
  void acquire(BlockId block);
  void release(BlockId block);
  [[nodiscard]] std::int64_t users(BlockId block) const { return at(block).users; }

  // States what a full block holds: the tokens behind those of `previous` (nothing: the first ones
  // of a text). From now on it must not be written. Where another block is known to hold the same,
  // that one stays the one that find() gives.
  void publish(BlockId block, std::optional<BlockId> previous,
               std::span<const std::int32_t> tokens);
  [[nodiscard]] bool is_published(BlockId block) const { return at(block).serial != 0; }
  // The published block that holds `tokens` behind those of `previous`.
  [[nodiscard]] std::optional<BlockId> find(std::optional<BlockId> previous,
                                            std::span<const std::int32_t> tokens) const;

 private:
  struct Block {
    std::int64_t users = 0;
    // Of its contents, counting up; 0: not published. A chain of blocks is known by the serials in
    // it, so that equal chains are equal texts: no hash decides.
    std::uint64_t serial = 0;
    std::uint64_t previous = 0;  // serial of the block before; 0: none
    std::vector<std::int32_t> tokens = {};
    std::uint64_t key = 0;                   // hash of `previous` and `tokens`
    std::list<BlockId>::iterator idle = {};  // its place in idle_, where it has no users
  };

  [[nodiscard]] const Block& at(BlockId block) const {
    return blocks_[static_cast<std::size_t>(block)];
  }
  Block& at(BlockId block) { return blocks_[static_cast<std::size_t>(block)]; }
  [[nodiscard]] std::uint64_t serial_of(std::optional<BlockId> block) const;
  [[nodiscard]] std::optional<BlockId> find(std::uint64_t previous,
                                            std::span<const std::int32_t> tokens,
                                            std::uint64_t key) const;
  void forget(BlockId block);

  std::vector<Block> blocks_;
  std::vector<BlockId> free_;  // nothing of use in them; the last one is the next to be given
  std::list<BlockId> idle_;    // published, without users; the first one is the next to be given
  std::unordered_multimap<std::uint64_t, BlockId> known_;  // key → the published blocks
  std::uint64_t serials_ = 0;
};

}  // namespace kernelpath::kv
