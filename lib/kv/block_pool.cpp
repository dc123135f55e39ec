#include "kv/block_pool.h"

#include "base/assert.h"

#include <algorithm>
#include <numeric>

namespace kernelpath::kv {
namespace {

// Chained: `previous` stands for everything before. FNV-1a over 32-bit words.
std::uint64_t key_of(std::uint64_t previous, std::span<const std::int32_t> tokens) {
  constexpr std::uint64_t kPrime = 0x100000001b3ULL;
  std::uint64_t hash = (0xcbf29ce484222325ULL ^ previous) * kPrime;
  for (const std::int32_t token : tokens) {
    hash = (hash ^ static_cast<std::uint32_t>(token)) * kPrime;
    hash ^= hash >> 32U;
  }
  return hash;
}

}  // namespace

BlockPool::BlockPool(std::int64_t num_blocks) : blocks_(static_cast<std::size_t>(num_blocks)) {
  free_.resize(blocks_.size());
  std::iota(free_.rbegin(), free_.rend(), 0);  // block 0 is given first
}

std::optional<BlockId> BlockPool::allocate() {
  if (free_.empty() && idle_.empty()) return std::nullopt;
  BlockId block = 0;
  if (!free_.empty()) {
    block = free_.back();
    free_.pop_back();
  } else {
    block = idle_.front();
    idle_.pop_front();
    forget(block);
  }
  KERNELPATH_ASSERT(at(block).users == 0);
  at(block).users = 1;
  return block;
}

void BlockPool::acquire(BlockId block) {
  Block& row = at(block);
  KERNELPATH_ASSERT(row.users > 0 || row.serial != 0);
  if (row.users == 0) idle_.erase(row.idle);
  ++row.users;
}

void BlockPool::release(BlockId block) {
  Block& row = at(block);
  KERNELPATH_ASSERT(row.users > 0);
  --row.users;
  if (row.users > 0) return;
  if (row.serial == 0) {
    free_.push_back(block);
  } else {
    row.idle = idle_.insert(idle_.end(), block);
  }
}

std::uint64_t BlockPool::serial_of(std::optional<BlockId> block) const {
  if (!block) return 0;
  KERNELPATH_ASSERT(is_published(*block));
  return at(*block).serial;
}

void BlockPool::publish(BlockId block, std::optional<BlockId> previous,
                        std::span<const std::int32_t> tokens) {
  Block& row = at(block);
  KERNELPATH_ASSERT(row.users > 0 && row.serial == 0);
  row.previous = serial_of(previous);
  row.key = key_of(row.previous, tokens);
  // A second block with the same text is chained to the first one's successors: one chain a text.
  const std::optional<BlockId> same = find(row.previous, tokens, row.key);
  row.serial = same ? at(*same).serial : ++serials_;
  row.tokens.assign(tokens.begin(), tokens.end());
  known_.emplace(row.key, block);
}

std::optional<BlockId> BlockPool::find(std::optional<BlockId> previous,
                                       std::span<const std::int32_t> tokens) const {
  if (previous && !is_published(*previous)) return std::nullopt;
  const std::uint64_t serial = serial_of(previous);
  return find(serial, tokens, key_of(serial, tokens));
}

std::optional<BlockId> BlockPool::find(std::uint64_t previous, std::span<const std::int32_t> tokens,
                                       std::uint64_t key) const {
  const auto [first, last] = known_.equal_range(key);
  for (auto row = first; row != last; ++row) {
    const Block& block = at(row->second);
    if (block.previous == previous && std::ranges::equal(block.tokens, tokens)) return row->second;
  }
  return std::nullopt;
}

void BlockPool::forget(BlockId block) {
  Block& row = at(block);
  const auto [first, last] = known_.equal_range(row.key);
  const auto own = std::find_if(first, last, [&](const auto& it) { return it.second == block; });
  KERNELPATH_ASSERT(own != last);
  known_.erase(own);
  row.serial = 0;
  row.previous = 0;
  row.tokens.clear();
}

}  // namespace kernelpath::kv
