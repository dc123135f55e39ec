#include "kv/block_manager.h"

#include "base/assert.h"
#include "base/checked.h"

#include <algorithm>

namespace kernelpath::kv {

BlockManager::BlockManager(std::int64_t num_blocks, std::int64_t page_size)
    : page_size_(page_size), pool_(num_blocks) {
  KERNELPATH_ASSERT(num_blocks >= 0 && page_size > 0);
}

bool BlockManager::has_room(std::int64_t tokens) const {
  return ceil_div(tokens, page_size_) <= pool_.available();
}

std::int64_t BlockManager::begin(SequenceId id, std::span<const std::int32_t> tokens) {
  KERNELPATH_ASSERT(!tokens.empty() && !sequences_.contains(id));
  Sequence& sequence = sequences_[id];
  const auto size = static_cast<std::int64_t>(tokens.size());
  std::optional<BlockId> previous;
  for (std::int64_t first = 0; first + page_size_ <= size; first += page_size_) {
    const auto page =
        tokens.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(page_size_));
    const std::optional<BlockId> found = pool_.find(previous, page);
    if (!found) break;
    pool_.acquire(*found);
    sequence.blocks.push_back(*found);
    previous = found;
  }
  sequence.published = static_cast<std::int64_t>(sequence.blocks.size());
  sequence.filled = std::min(sequence.published * page_size_, size - 1);
  return sequence.filled;
}

void BlockManager::fork(SequenceId parent, SequenceId id) {
  KERNELPATH_ASSERT(!sequences_.contains(id));
  const Sequence copy = sequences_.at(parent);
  for (const BlockId block : copy.blocks) pool_.acquire(block);
  sequences_.emplace(id, copy);
}

bool BlockManager::extend(SequenceId id, std::int64_t tokens) {
  Sequence& sequence = sequences_.at(id);
  if (tokens <= sequence.filled) return true;
  const auto held = static_cast<std::int64_t>(sequence.blocks.size());
  const std::int64_t needed = std::max(ceil_div(tokens, page_size_), held);
  const std::int64_t first_written = sequence.filled / page_size_;
  const std::int64_t last_written = std::min((tokens - 1) / page_size_ + 1, held);
  std::vector<std::size_t> shared;
  for (std::int64_t i = first_written; i < last_written; ++i) {
    const auto index = static_cast<std::size_t>(i);
    if (!may_write(sequence.blocks[index])) shared.push_back(index);
  }
  if (needed - held + static_cast<std::int64_t>(shared.size()) > pool_.available()) return false;
  for (const std::size_t index : shared) {
    const BlockId from = sequence.blocks[index];
    const BlockId to = pool_.allocate().value();
    copies_.push_back({.from = from, .to = to});
    sequence.blocks[index] = to;
    sequence.published = std::min(sequence.published, static_cast<std::int64_t>(index));
    pool_.release(from);
  }
  while (static_cast<std::int64_t>(sequence.blocks.size()) < needed) {
    sequence.blocks.push_back(pool_.allocate().value());
  }
  return true;
}

void BlockManager::computed(SequenceId id, std::span<const std::int32_t> tokens) {
  Sequence& sequence = sequences_.at(id);
  computed_privately(id, static_cast<std::int64_t>(tokens.size()));
  for (std::int64_t i = sequence.published; (i + 1) * page_size_ <= sequence.filled; ++i) {
    const auto index = static_cast<std::size_t>(i);
    const std::optional<BlockId> previous =
        i == 0 ? std::nullopt : std::optional(sequence.blocks[index - 1]);
    pool_.publish(sequence.blocks[index], previous,
                  tokens.subspan(static_cast<std::size_t>(i * page_size_),
                                 static_cast<std::size_t>(page_size_)));
    sequence.published = i + 1;
  }
}

void BlockManager::computed_privately(SequenceId id, std::int64_t tokens) {
  Sequence& sequence = sequences_.at(id);
  KERNELPATH_ASSERT(tokens <= static_cast<std::int64_t>(sequence.blocks.size()) * page_size_);
  sequence.filled = tokens;
}

void BlockManager::release(SequenceId id) {
  const auto sequence = sequences_.find(id);
  KERNELPATH_ASSERT(sequence != sequences_.end());
  // From the end: a block is of use only behind those before it, so it is the first to be evicted.
  const std::vector<BlockId>& blocks = sequence->second.blocks;
  std::for_each(blocks.rbegin(), blocks.rend(), [&](BlockId block) { pool_.release(block); });
  sequences_.erase(sequence);
}

std::span<const BlockId> BlockManager::block_table(SequenceId id) const {
  return sequences_.at(id).blocks;
}

}  // namespace kernelpath::kv
