#pragma once

#include <cstdint>
#include <span>

namespace kernelpath::runtime {

// What a sequence is known by; they count up in the order of arrival.
using SequenceId = std::int64_t;

// What the scheduler asks of the KV cache. Sizes count tokens.
class SequenceCache {
 public:
  virtual ~SequenceCache() = default;

  // The longest sequence that an empty cache can hold.
  [[nodiscard]] virtual std::int64_t capacity() const = 0;
  // Whether room for `tokens` more tokens of a new sequence is free or can be made free by evicting
  // what no sequence uses.
  [[nodiscard]] virtual bool has_room(std::int64_t tokens) const = 0;

  // Begins a sequence. Pages that an earlier sequence filled with the same beginning are shared;
  // returns how many tokens they hold, fewer than tokens.size(). Sequences of different `salt`
  // share nothing.
  virtual std::int64_t begin(SequenceId id, std::span<const std::int32_t> tokens,
                             std::uint64_t salt) = 0;
  // Makes room for the first `tokens` tokens of the sequence. False, with nothing changed, where
  // the cache is full.
  virtual bool extend(SequenceId id, std::int64_t tokens) = 0;
  // The first tokens.size() tokens of the sequence are in the cache now: full pages of them may be
  // shared from here on.
  virtual void computed(SequenceId id, std::span<const std::int32_t> tokens) = 0;
  // The pages of a sequence, in the order of its tokens; good until the next extend() or release().
  [[nodiscard]] virtual std::span<const std::int32_t> block_table(SequenceId id) const = 0;
  // Ends a sequence. What may be shared stays until its room is needed.
  virtual void release(SequenceId id) = 0;
};

}  // namespace kernelpath::runtime
